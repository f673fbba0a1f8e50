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
