# SPDX-License-Identifier: Apache-2.0
# PADDOCK_FLAG(flag): adds a compiler flag to PADDOCK_CFLAGS where the compiler knows it.
AC_DEFUN([PADDOCK_FLAG], [
  AS_VAR_PUSHDEF([v], [paddock_cv_flag_$1])
  AC_CACHE_CHECK([whether $CC takes $1], [v], [
    paddock_save=$CFLAGS; CFLAGS="$CFLAGS -Werror $1"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM()], [AS_VAR_SET([v], [yes])], [AS_VAR_SET([v], [no])])
    CFLAGS=$paddock_save])
  AS_VAR_IF([v], [yes], [PADDOCK_CFLAGS="$PADDOCK_CFLAGS $1"])
  AS_VAR_POPDEF([v])])

# PADDOCK_NEED(PREFIX, module): a library without which nothing is built.
AC_DEFUN([PADDOCK_NEED], [PKG_CHECK_MODULES([$1], [$2],,
  [AC_MSG_ERROR([$2 is missing: run contrib/install-deps])])])

# PADDOCK_LLVM(program): the program by its names with a version, the newest first.
m4_define([PADDOCK_LLVM], [$1-21 $1-20 $1-19 $1-18 $1-17 $1-16 $1-15 $1-14])

# PADDOCK_BPFTOOL: the bpftool that runs. Ubuntu's in the path is a script which asks for the program
# of the kernel that runs; any of those will do.
AC_DEFUN([PADDOCK_BPFTOOL], [
  AC_ARG_VAR([BPFTOOL], [bpftool])
  AC_CACHE_CHECK([for bpftool], [paddock_cv_bpftool], [
    paddock_cv_bpftool=
    for paddock_try in "$BPFTOOL" `command -v bpftool` /usr/sbin/bpftool /usr/lib/linux-tools*/bpftool \
        /usr/lib/linux-tools/*/bpftool; do
      AS_IF([test -n "$paddock_try" && "$paddock_try" version >/dev/null 2>&1],
        [paddock_cv_bpftool=$paddock_try; break])
    done])
  BPFTOOL=$paddock_cv_bpftool])
