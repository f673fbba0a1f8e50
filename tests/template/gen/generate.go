// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand"
	"strings"
)

const data = `{"i":3,"j":-7,"z":0,"big":9007199254740993,"f":1.5,"g":1234567.0,"h":0.00001,"s":"web","q":"a \"b\" <c> & 'd'","u":"h\u00e9llo w\u00f6rld","e":"",` +
	`"y":true,"n":false,"l":[1,"x",2.5,null,[1,2],{"k":"v"}],"el":[],"ls":["b","a","c"],"m":{"k":"v","b":2,"a":1,"x.y":"z"},"em":{},` +
	`"d":{"t":{"Events":[{"A":1},{"A":2}],"B":null}}}`

type generator struct {
	r     *rand.Rand
	vars  []string
	loops int
	task  bool
}

func (g *generator) pick(s ...string) string { return s[g.r.Intn(len(s))] }

func (g *generator) field() string {
	f := g.pick(".i", ".j", ".z", ".f", ".g", ".h", ".s", ".q", ".u", ".e", ".y", ".n", ".l", ".el", ".ls", ".m", ".em", ".d", ".missing",
		".m.k", ".m.zzz", ".d.t", ".d.t.Events", ".d.t.B", ".d.t.B.x", ".s.x", ".l.x", ".big", ".", ".missing.deep")
	if g.r.Intn(3) == 0 {
		if f == "." {
			return "$"
		}
		return "$" + f
	}
	return f
}

func (g *generator) literal() string {
	return g.pick("0", "1", "-1", "3", "42", "0x1F", "0b101", "0o17", "1_000", "1.5", "-0.0", "1e3", "1e21", "1e-7", "2.50", "0x1p4", "'a'", "'\\n'", `"x"`,
		`"a b"`, `""`, `"%d"`, `"tab\tq\"uote"`, `"\u00e9"`, "`raw \\n`", "true", "false", "nil", "1i", "9223372036854775807", "'é'")
}

func (g *generator) verb() string {
	return `"` + g.pick("", "<", "a ") + "%" + g.pick("", "", "", "-", "+", "#", "0", " ", "+#", "-0") + g.pick("", "", "", "5", "10", "3", "*", "[1]") +
		g.pick("", "", "", ".2", ".0", ".", ".*", ".10") + g.pick("v", "d", "s", "q", "x", "X", "f", "e", "g", "t", "T", "c", "U", "b", "o", "O", "G", "E", "z", "%", "") +
		g.pick("", ">", " b", "%v") + `"`
}

func (g *generator) operand(depth int) string {
	switch g.r.Intn(8) {
	case 0, 1, 2:
		return g.field()
	case 3, 4:
		return g.literal()
	case 5:
		if len(g.vars) > 0 {
			v := g.vars[g.r.Intn(len(g.vars))]
			return v + g.pick("", "", ".k", ".A")
		}
		return g.field()
	default:
		if depth <= 0 {
			return g.field()
		}
		return "(" + g.pipeline(depth-1) + ")" + g.pick("", "", "", ".k", ".A")
	}
}

func (g *generator) command(depth int) string {
	a := func() string { return g.operand(depth) }
	switch g.r.Intn(26) {
	case 0:
		return "len " + a()
	case 1:
		return "index " + a() + " " + a()
	case 2:
		return "index " + a() + " " + a() + " " + a()
	case 3:
		return "slice " + a() + " " + a() + g.pick("", " "+a())
	case 4:
		return g.pick("eq", "ne", "lt", "le", "gt", "ge") + " " + a() + " " + a()
	case 5:
		return "eq " + a() + " " + a() + " " + a()
	case 6:
		return g.pick("and", "or") + " " + a() + " " + a() + g.pick("", " "+a())
	case 7:
		return "not " + a()
	case 8:
		return "printf " + g.verb() + " " + a() + g.pick("", "", " "+a(), " "+a()+" "+a())
	case 9:
		return g.pick("print", "println", "html", "js", "urlquery") + " " + a() + g.pick("", " "+a(), " "+a()+" "+a())
	case 10:
		return "printf " + g.verb() + " " + a()
	case 11:
		return "call " + a()
	case 12:
		return a() + " " + a()
	default:
		return a()
	}
}

func (g *generator) pipeline(depth int) string {
	s := g.command(depth)
	for g.r.Intn(4) == 0 {
		s += g.pick(" | ", "|", " |  ") + g.pick("len", "not", "print", "printf \"%v\"", "html", "js", "urlquery", "printf "+g.verb(), "eq 1", "index .l", "println", ".s", "or 1", "and 1")
	}
	return s
}

func (g *generator) action(body string) string {
	return g.pick("{{", "{{", "{{", "{{- ", "{{ ") + body + g.pick("}}", "}}", "}}", " -}}", " }}")
}

func (g *generator) block(depth int) string {
	var b strings.Builder
	for i := g.r.Intn(3) + 1; i > 0; i-- {
		b.WriteString(g.statement(depth))
	}
	return b.String()
}

func (g *generator) statement(depth int) string {
	if depth <= 0 {
		return g.pick("", " ", "x\n") + g.action(g.pipeline(1))
	}
	vars := g.vars
	switch g.r.Intn(14) {
	case 0, 1:
		s := g.action("if "+g.pipeline(depth-1)) + g.block(depth-1)
		if g.r.Intn(3) == 0 {
			s += g.action("else if "+g.pipeline(1)) + g.block(depth-1)
		}
		if g.r.Intn(2) == 0 {
			s += g.action("else") + g.block(depth-1)
		}
		g.vars = vars
		return s + g.action("end")
	case 2:
		s := g.action("with "+g.pick("", "$w := ")+g.pipeline(depth-1)) + g.block(depth-1)
		if g.r.Intn(2) == 0 {
			s += g.action("else") + g.block(depth-1)
		}
		return s + g.action("end")
	case 3, 4, 5:
		over := g.pick(".l", ".ls", ".m", ".el", ".d.t.Events", ".em", ".i", ".z", "3", ".s", "$.ls", "$.m", "$.l", g.pipeline(1))
		decl := g.pick("", "$e := ", "$k, $e := ", "$k, $e := ")
		if strings.Contains(decl, "$e") {
			g.vars = append(append([]string{}, vars...), "$e")
			if strings.Contains(decl, "$k") {
				g.vars = append(g.vars, "$k")
			}
		}
		g.loops++
		s := g.action("range "+decl+over) + g.block(depth-1)
		if g.r.Intn(4) == 0 {
			s += g.action("if "+g.operand(1)) + g.action(g.pick("break", "continue")) + g.action("end") + g.block(0)
		}
		g.loops--
		g.vars = vars
		if g.r.Intn(3) == 0 {
			s += g.action("else") + g.block(depth-1)
		}
		return s + g.action("end")
	case 6, 7:
		v := fmt.Sprintf("$v%d", g.r.Intn(3))
		s := g.action(v + " := " + g.pipeline(1))
		g.vars = append(append([]string{}, vars...), v)
		return s
	case 8:
		if len(vars) > 0 {
			return g.action(vars[g.r.Intn(len(vars))] + " = " + g.pipeline(1))
		}
		return g.action("/* note */")
	case 9:
		return g.action("template " + g.pick(`"T"`, `"T"`, `"U"`, `"none"`) + g.pick("", " "+g.pipeline(1)))
	case 10:
		return g.action("block "+g.pick(`"B"`, `"C"`)+" "+g.pipeline(1)) + g.pick("in {{.}}", "{{print .}} {{$}}") + g.action("end")
	default:
		return g.pick("text ", "\n", "  ", "a\n  ", "é ") + g.action(g.pipeline(depth-1))
	}
}

func (g *generator) one() {
	g.vars, g.loops = nil, 0
	var b strings.Builder
	if g.r.Intn(3) == 0 {
		b.WriteString(`{{define "T"}}[{{.}}]{{end}}` + g.pick("", `{{define "U"}}{{range .}}{{template "T" .}}{{end}}{{end}}`))
	}
	for i := g.r.Intn(3) + 1; i > 0; i-- {
		b.WriteString(g.statement(2))
	}
	s := b.String()
	if g.r.Intn(8) == 0 { // a slip of the pen
		rs := []rune(s)
		at := g.r.Intn(len(rs))
		switch g.r.Intn(3) {
		case 0:
			rs = append(rs[:at:at], rs[at+1:]...)
		case 1:
			rs = append(rs[:at:at], append([]rune(g.pick("{{", "}}", "\"", "(", ")", "|", ".", "$", " ", "\n", "-", ":", "é", "€", "`", "end", ",")), rs[at:]...)...)
		default:
			rs[at] = []rune(g.pick("(", ")", "|", "}", "{", "\"", "#"))[0]
		}
		s = string(rs)
	}
	vectorGo(s)
}

// What generation does not meet.
func fixed() {
	for _, s := range []string{
		"", "plain", "{{/* a */}}x", "{{- /* a */ -}} x", "a {{- /* b */ -}} c", "{{/* a}}", "{{/* a */ }}", "{{3}}{{-3}} {{- 3}}",
		"{{\n1\n}}\n{{.x\n.y}}", "{{define \"a\"}}1{{end}}{{define \"a\"}}2{{end}}{{template \"a\"}}", "{{define \"a\"}} {{end}}{{define \"a\"}}2{{end}}{{template \"a\"}}",
		"{{define `x`}}{{end}}{{template `x`}}", "{{define x}}{{end}}", "{{define \"x\"}}", "{{define \"x\"}}{{else}}{{end}}", "{{if 1}}{{define \"x\"}}{{end}}{{end}}",
		"{{template \"x\" 1 2}}", "{{template x}}", "{{block \"x\"}}{{end}}", "{{end}}", "{{else}}", "{{break}}", "{{continue}}", "{{range .l}}{{break 1}}{{end}}",
		"{{range $a, $b, $c := .l}}{{end}}", "{{range $a, 1 := .l}}{{end}}", "{{$a, $b := .m}}", "{{range $a, $b = .m}}{{end}}", "{{$k := 0}}{{$v := 0}}{{range $k, $v = .m}}{{end}}{{$k}}{{$v}}",
		"{{1 | 2}}", "{{.s | .s}}", "{{nil}}", "{{nil.x}}", "{{(nil).x}}", "{{true.x}}", "{{1.x}}", "{{\"a\".x}}", "{{.}}", "{{..}}", "{{.1}}", "{{$.}}", "{{$x.y}}",
		"{{len (1)}}", "{{len nil}}", "{{printf}}", "{{printf 1}}", "{{printf \"%d\"}}", "{{printf \"%d\" 1 2}}", "{{printf \"%[2]d %[1]d\" 1 2}}", "{{printf \"%[3]d\" 1}}", "{{printf \"%!\"}}",
		"{{printf \"%*d|%-*d|\" 5 1 5 2}}", "{{printf \"%.*f\" 2 3.14159}}", "{{printf \"%*d\" \"x\" 1}}", "{{printf \"%6.2f|%-8.3s|%+d|%x|%X|%#x|% d|%08.3f|%+.2e\" 3.14159 \"abcdef\" 5 255 255 255 5 3.14159 12345.678}}",
		"{{printf \"%q %#q %+q %x % x %#x\" \"h\\u00e9\" \"a`b\" \"\\u00e9\" \"hi\" \"hi\" \"hi\"}}", "{{printf \"%t %v %T\" true nil nil}}", "{{printf \"%c %U %#U %q\" 233 233 233 233}}", "{{printf \"%v %+v %#v\" .m .l .d}}",
		"{{printf \"%5t|%-7t|%q|%s|%d\" true false 'x' .l .l}}", "{{printf \"%x %X %o %b %O %#o %#b\" 10 10 10 10 10 10 10}}", "{{printf \"%g %G %e %f %.3g %#g %x\" 1e100 1e-100 1.5 1.5 1234.5678 1.0 1.5}}",
		"{{printf \"%d\" 1.5}}{{printf \"%s\" 1}}{{printf \"%f\" 1}}{{printf \"%z\" 1}}{{printf \"%d\" nil}}{{printf \"%s\" nil}}", "{{printf \"%10000000d\" 1}}", "{{printf \"%.3v|%10v|%-10v|\" \"abcdef\" \"abc\" \"abc\"}}",
		"{{index .l 0}}{{index .l 5 \"k\"}}{{index .m \"k\"}}{{index .m \"zz\"}}", "{{index .l -1}}", "{{index .l \"a\"}}", "{{index .l 6}}", "{{index .m 1}}", "{{index nil 1}}", "{{index 1 1}}", "{{index .s 0}}", "{{index .s 3}}", "{{index .l nil}}",
		"{{slice .s 1}}{{slice .s 1 2}}{{slice .ls 1}}", "{{slice .s 2 1}}", "{{slice .s 1 2 3}}", "{{slice .ls 0 1 2}}", "{{slice 1}}", "{{slice .s 9}}", "{{slice nil}}", "{{slice .l 0 1 2 3}}",
		"{{eq}}", "{{eq 1}}", "{{eq 1 1.0}}", "{{eq .l .l}}", "{{eq .m nil}}", "{{eq nil nil}}", "{{eq .missing nil}}", "{{lt 1}}", "{{lt true false}}", "{{lt .l .l}}", "{{lt nil 1}}", "{{gt \"b\" \"a\"}}{{ge 1 1}}{{le 2 1}}{{ne 1 2}}",
		"{{and}}", "{{or}}", "{{not}}", "{{and 1 0 (index .l 99)}}", "{{or 1 (index .l 99)}}", "{{or 0 (index .l 99)}}", "{{1 | and 0}}", "{{1 | or 0}}", "{{and nil}}", "{{not nil}}",
		"{{range 3}}{{.}}{{end}}", "{{range $i := 3}}{{$i}}{{end}}", "{{range $i, $j := 3}}{{end}}", "{{range -1}}x{{else}}none{{end}}", "{{range 1.5}}{{end}}", "{{range true}}{{end}}", "{{range \"abc\"}}{{end}}", "{{range nil}}{{end}}",
		"{{with $x := .s}}{{$x}}{{end}}{{with .e}}a{{else with .s}}{{.}}{{else}}c{{end}}", "{{with nil}}{{end}}", "{{if .e}}a{{else if .s}}b{{else}}c{{end}}", "{{if 1}}a{{else}}b{{else}}c{{end}}", "{{if}}{{end}}", "{{if 1}}", "{{if 1", "{{\"abc", "{{`abc", "{{'a", "{{'ab'}}", "{{''}}",
		"{{1a}}", "{{0x}}", "{{08}}", "{{1__0}}", "{{99999999999999999999}}", "{{18446744073709551615}}", "{{1e999}}", "{{1+2i}}", "{{1+2}}", "{{-}}", "{{+1}}", "{{1.}}", "{{.5}}", "{{0.5e1}}", "{{0x1.8p1}}", "{{\"\\x41\\101\\u0041\\U00000041\"}}", "{{\"\\z\"}}", "{{\"\\ud800\"}}",
		"{{(1)}}{{((1))}}{{(1 2)}}", "{{(1}}", "{{1)}}", "{{()}}", "{{|}}", "{{1|}}", "{{|1}}", "{{,}}", "{{#}}", "{{é}}", "{{€}}", "{{a€}}", "{{.a€}}", "{{$é := 1}}{{$é}}", "{{.é}}", "{{:}}", "{{=}}", "{{$x = 1}}", "{{$x := }}", "{{$x :=1}}{{$x=2}}{{$x}}", "{{$x}}",
		"{{.s.x}}", "{{.l.x}}", "{{.i.x.y}}", "{{.missing.x}}", "{{.m.k.z}}", "{{.s 1}}", "{{1 | .s}}", "{{\"a\" 1}}", "{{$ 1}}", "{{(.s) 1}}", "{{(len .s) 1}}", "{{nofunc}}", "{{nofunc 1}}", "{{call}}", "{{call nil}}", "{{call .s}}", "{{call .missing}}", "{{call 1 2}}", "{{print (call .i)}}",
		"{{print}}", "{{print 1 \"a\" 2 3 nil true}}", "{{println}}", "{{html .q}} {{.q|html}} {{html 1 nil .m}}", "{{js .q}} {{js \"a\\nb\\u00e9\\u2028\"}}", "{{urlquery .q .u}}", "{{html nil}}{{js .missing}}{{urlquery nil}}",
		"{{- \"a\" -}}  b  {{- \"c\"}}", "a\n\n{{- 1 }}\n{{ 2 -}}\n\nb", "{{-1}}", "{{ - 1}}", "{{1 -}}}}", "{{1 - }}", "{{if 1 -}}  x  {{- end}}", "a {{define \"z\"}}q{{end}} b{{template \"z\"}}",
		"{{template \"z\" .s}}{{define \"z\"}}{{.}}{{$}}{{end}}", "{{define \"r\"}}{{template \"r\"}}{{end}}x", "{{$x := 1}}{{define \"v\"}}{{$x}}{{end}}", "{{range .ls}}{{$x := .}}{{end}}{{$x}}", "{{range .ls}}{{if eq . \"a\"}}{{continue}}{{end}}{{.}}{{end}}|{{range .ls}}{{if eq . \"a\"}}{{break}}{{end}}{{.}}{{end}}",
		"{{range .d.t.Events}}{{.A}}{{$.s}}{{end}}", "{{(index .d.t.Events 1).A}}", "{{.d.t.B}}{{.d.t.B.x}}", "{{\"%\"}}{{.nope.nope}}{{index .l 77}}", "{{template \"100%d\"}}", "{{break}}{{end}}", "{{if 1}}{{break}}{{end}}", "{{range 2}}{{define \"x\"}}{{break}}{{end}}{{end}}",
		"{{12345678901 | printf \"%d\"}}", "{{.g}} {{.h}} {{.f}} {{.big}} {{1e20}} {{1e21}} {{123456789.0}} {{0.1}} {{100000.0}} {{1000000.0}} {{-0.0}} {{3.0}}", "{{print 1e6 1e5 0.0001 0.00001}}", "{{.l}} {{.m}} {{.d}} {{.n}} {{.e}} {{.em}} {{.el}}",
	} {
		vectorGo(s)
	}
}
