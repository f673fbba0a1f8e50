package main

import (
	"fmt"
	"strconv"
	"unicode"
)

func class(r rune) int {
	c := 0
	if unicode.IsLetter(r) {
		c |= 1
	}
	if unicode.IsDigit(r) {
		c |= 2
	}
	if strconv.IsPrint(r) {
		c |= 4
	}
	if unicode.IsSpace(r) {
		c |= 8
	}
	return c
}

func main() {
	fmt.Println("/* SPDX-License-Identifier: Apache-2.0\n *\n * Classes and cases of characters from U+0080 on, from Unicode " + unicode.Version + ": made by tests/template/gen/unicode.go.\n */")
	fmt.Println("/* first, last, class: 1 letter, 2 digit, 4 printable, 8 space */\nstatic const struct rune_class rune_classes[] = {")
	col := ""
	put := func(s string) {
		if len(col)+len(s) > 92 {
			fmt.Println("    " + col)
			col = ""
		}
		if col != "" {
			col += " "
		}
		col += s
	}
	flush := func() {
		if col != "" {
			fmt.Println("    " + col)
		}
		col = ""
	}
	start, cur := rune(0x80), class(0x80)
	for r := rune(0x81); r <= 0x110000; r++ {
		c := -1
		if r <= 0x10ffff {
			c = class(r)
		}
		if c != cur {
			if cur != 0 {
				put(fmt.Sprintf("{0x%x, 0x%x, %d},", start, r-1, cur))
			}
			start, cur = r, c
		}
	}
	flush()
	fmt.Println("};\n/* first, last, step, and what is added for upper, lower and title case */\nstatic const struct rune_case rune_cases[] = {")
	type row struct {
		lo, hi, step rune
		u, l, t      rune
	}
	var rows []row
	for r := rune(0x80); r <= 0x10ffff; r++ {
		u, l, t := unicode.ToUpper(r)-r, unicode.ToLower(r)-r, unicode.ToTitle(r)-r
		if u == 0 && l == 0 && t == 0 {
			continue
		}
		done := false
		for i := len(rows) - 1; i >= 0 && i >= len(rows)-2; i-- {
			q := &rows[i]
			if q.u != u || q.l != l || q.t != t {
				continue
			}
			d := r - q.hi
			if d > 2 {
				continue
			}
			if q.lo == q.hi && i == len(rows)-1 || q.lo == q.hi && d == 2 {
				q.step, q.hi, done = d, r, true
			} else if q.step == d {
				q.hi, done = r, true
			}
			break
		}
		if !done {
			rows = append(rows, row{r, r, 1, u, l, t})
		}
	}
	for _, q := range rows {
		put(fmt.Sprintf("{0x%x, 0x%x, %d, %d, %d, %d},", q.lo, q.hi, q.step, q.u, q.l, q.t))
	}
	flush()
	fmt.Println("};")
}
