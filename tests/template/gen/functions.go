// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math/rand"
	"reflect"
	"sort"
	"strings"

	"github.com/Masterminds/sprig/v3"
)

// Parameters of consul-template's functions, a letter each: s text, i whole number, a anything, l list of anything, S list of
// texts, m map, n text of a number, j JSON, x regular expression, b base64, t text of a bool, . several of the last.
var helpers = map[string]string{
	"in": "aa", "contains": "aa", "containsAll": "la", "containsAny": "la", "containsNone": "la", "containsNotAll": "la", "indent": "is", "join": "sS",
	"trim": "ss", "trimPrefix": "ss", "trimSuffix": "ss", "trimSpace": "s", "replaceAll": "sss", "toLower": "s", "toUpper": "s", "toTitle": "s", "split": "ss",
	"splitToMap": "sss", "regexMatch": "xs", "regexReplaceAll": "xss", "sha256Hex": "s", "md5sum": "s", "hmacSHA256Hex": "ss", "base64Encode": "s",
	"base64Decode": "b", "base64URLEncode": "s", "base64URLDecode": "b", "parseInt": "n", "parseUint": "n", "parseFloat": "n", "parseBool": "t", "loop": "ii",
	"add": "aa", "subtract": "aa", "multiply": "aa", "divide": "aa", "modulo": "aa", "minimum": "aa", "maximum": "aa", "parseJSON": "j", "parseYAML": "y",
	"toJSON": "a", "toJSONPretty": "a", "toUnescapedJSON": "a", "toUnescapedJSONPretty": "a", "toYAML": "a", "toTOML": "m", "explodeMap": "m", "mergeMap": "mm",
	"mergeMapWithOverride": "mm", "env": "s", "envOrDefault": "ss", "mustEnv": "s", "byTag": "a", "byPort": "a", "plugin": "s",
	"nomadVar": "s", "nomadVarExists": "s", "nomadVarList": "s", "nomadVarListSafe": "s", "nomadService": "s", "nomadServices": "", "len": "a", "index": "aa",
	"slice": "aii", "html": "a.", "js": "a.", "urlquery": "a.", "print": "a.", "println": "a.", "not": "a", "eq": "aa", "ne": "aa", "lt": "aa", "le": "aa", "gt": "aa", "ge": "aa",
}

var edges = map[byte][]string{
	's': {`""`, `"a"`, `"abc"`, `" a b "`, `"Hello World"`, `"héllo wörld ß"`, `"a,b,,c"`, `"x=1 y=2"`, `"line1\nline2\n\nl4"`, `"snake_case_word"`, `"kebab-case"`, `"CamelCaseHTTP"`, `"<a href=\"x\">&'"`,
		`"foo.bar/baz"`, `"/a/b/../c"`, `"日本語"`, `"aaa"`, `"a"`, `","`, `" "`, `"$1-${1}"`, `"12"`, `"1.2.3"`, `"tab\there"`, `"it's o'clock"`, `"ALL CAPS"`, `"😀x"`, `"a\u0301"`, `"-"`, `"http://u:p@h.example:80/p/q?x=1&y#f"`},
	'i': {`0`, `1`, `-1`, `2`, `3`, `5`, `10`, `17`, `-3`, `100`},
	'a': {`""`, `"abc"`, `"12"`, `0`, `1`, `-7`, `3`, `2.5`, `-0.5`, `1e21`, `true`, `false`, `nil`, `(parseJSON "[1,\"a\",null,2.5,[1],{\"k\":\"v\"}]")`, `(parseJSON "[]")`, `(parseJSON "{\"b\":1,\"a\":[true],\"c\":{\"d\":\"e\"}}")`,
		`(parseJSON "{}")`, `(split "," "b,a,c")`, `(split "," "")`, `(parseInt "-5")`, `(parseUint "7")`, `(parseJSON "null")`, `(parseJSON "3")`, `(parseJSON "[\"x\",\"y\",\"x\"]")`, `(sprig_list 3 1 2)`, `(sprig_dict "k" "v" "n" 1)`, `(splitToMap "," "=" "a=1,b=2")`},
	'l': {`(parseJSON "[1,\"a\",null,2.5,[1],{\"k\":\"v\"}]")`, `(parseJSON "[]")`, `(parseJSON "[\"x\",\"y\",\"x\"]")`, `(sprig_list 3 1 2)`, `(sprig_list "a" "b")`, `(sprig_list)`, `nil`, `(split "," "b,a,c")`, `(sprig_list 0 "" nil false 1)`, `(sprig_list "a" 1 2.5 true)`},
	'S': {`(split "," "b,a,c")`, `(split "," "")`, `(split "," "x")`, `nil`, `(sprig_splitList "/" "a/b//c")`},
	'm': {`(parseJSON "{\"b\":1,\"a\":[true],\"c\":{\"d\":\"e\"}}")`, `(parseJSON "{}")`, `(sprig_dict "k" "v" "n" 1)`, `(sprig_dict "c" (sprig_dict "d" 2 "z" 1) "b" nil)`, `(parseJSON "{\"a/b\":1,\"a/c/d\":\"x\",\"e\":\"\"}")`,
		`(parseJSON "{\"a\":1,\"a/b\":2}")`, `nil`, `(parseJSON "{\"s\":\"x y\",\"f\":1.5,\"i\":10,\"t\":true,\"l\":[1,2],\"n\":{\"p\":\"q\",\"r\":[\"a\"]},\"k.d\":\"e\"}")`, `(sprig_dict "a" 1 "l" (sprig_list 1 2) "m" (sprig_dict "x" (sprig_dict "y" "z")))`},
	'n': {`""`, `"0"`, `"12"`, `"-5"`, `"+7"`, `"1.5"`, `"1e3"`, `"abc"`, `" 1"`, `"0x10"`, `"1_000"`, `"9223372036854775807"`, `"9223372036854775808"`, `"18446744073709551616"`, `"inf"`, `"NaN"`, `"1e400"`, `".5"`, `"5."`, `"é"`},
	't': {`""`, `"1"`, `"t"`, `"TRUE"`, `"true"`, `"False"`, `"0"`, `"yes"`, `" true"`},
	'b': {`""`, `"aGVsbG8="`, `"aGVsbG8"`, `"YQ=="`, `"YQ="`, `"YQ"`, `"!!!!"`, `"YWJj"`, `"YWJj\nZGVm"`, `"_-8="`, `"+/8="`, `"YQ==x"`, `"A"`, `"AA=A"`, `"===="`},
	'x': {`""`, `"a"`, `"a+"`, `"^a"`, `"(a)(b)?"`, `"[a-z]+"`, `"\\d+"`, `"(?i)HELLO"`, `"x*"`, `"(\\w+) (\\w+)"`, `"\\s"`, `"o."`, `"(?P<first>\\w)"`, `","`, `"é|ö"`, `"$"`},
	'j': {`""`, `"null"`, `"true"`, `"1"`, `"-1.5e3"`, `"\"s\""`, `"[1,2"`, `"{}"`, `"{\"a\":1,\"a\":2}"`, `"{\"a\"}"`, `"[1,]"`, `"{a:1}"`, `"nul"`, `"1 2"`, `"\"\\u00e9\\ud83d\\ude00\""`, `"\"\\x\""`, `"\"a"`, `" [ ] "`, `"01"`, `"1."`, `"[1 2]"`, `"{\"a\":1,}"`, `"{\"a\" 1}"`, `"-"`, `"\"\t\""`, `"[[[]]]"`, `"12345678901234567890"`, `"é"`, `"{\"b\":[null,{}],\"a\":\"\\/\\n\"}"`, `"]"`, `"1e999"`, `"tru"`, `"trux"`, `"{1:2}"`, `"  "`},
	'c': {`"1.2.3"`, `">= 1.2, < 2"`, `"~1.2"`, `"^1.2.3"`, `"^0.2.3"`, `"^0"`, `"1.x"`, `"*"`, `"!=1.2"`, `"!= 1.2.3"`, `"1.2 - 2.0"`, `">1"`, `"<=1.2"`, `"<2.0.0-0"`, `">= 1 || < 0.5"`, `"~> 1.2.3"`, `"=1.2"`, `"bad"`, `""`, `">1.2.3-alpha"`, `"> x"`, `"1.2.3 2"`, `"^1.2-beta"`, `"v1.2"`, `"=> 1.2"`, `"1.2.3,"`, `"~0"`, `"!=1"`, `"!=1.2.x"`, `"<1.2"`},
	'v': {`"1.2.3"`, `"v1.2.4"`, `"1.2"`, `"1"`, `"2.0.0"`, `"0.2.9"`, `"0.3.0"`, `"1.2.3-beta.1"`, `"1.2.3-alpha"`, `"1.2.3+build"`, `"1.3.0-rc.1+x.y"`, `"a.b"`, `""`, `"1.2.3.4"`, `"01.2.3"`, `"1.2.3-01"`, `"99999999999999999999.1"`, `"1.2.0"`, `"0.0.1"`},
	'u': {`"http://u:p@h.example:80/p/q?x=1&y#f"`, `"https://h/"`, `"h/p"`, `"/abs"`, `"//h/p"`, `"mailto:a@b"`, `"http://[::1]:80/x"`, `""`, `":x"`, `"http://h:port/"`, `"a:b"`, `"http://h/%41%zz"`, `"http://h/%41"`, `"HTTP://H/é"`, `"?q"`, `"#f"`, `"x y"`, `"1:2"`, `"http://h?x=1"`},
	'U': {`(sprig_dict "scheme" "http" "host" "h" "path" "/p")`, `(sprig_dict "host" "h:1" "path" "p q" "query" "a=b" "fragment" "f g" "userinfo" "u:p" "scheme" "ftp")`, `(sprig_dict "path" "a:b/c")`, `(sprig_dict "scheme" "mailto" "opaque" "a@b")`, `(sprig_dict "scheme" 1)`, `(sprig_dict)`, `(sprig_dict "path" "/a?b")`, `(sprig_dict "scheme" "file" "path" "/x")`},
	'y': {`""`, `"a: 1"`, `"a: [1, 2, {b: c}]\nd:\n  - x\n  - y: z\n"`, `"- 1\n- two\n- 3.5\n- true\n- ~\n- null\n- 'q'\n"`, `"a: 'it''s'\nb: \"x\\ny\"\n"`, `"x"`, `"1: a\n2: b"`, `"a: |\n  line1\n  line2\nb: >\n  f1\n  f2\n"`, `"a: &x 1\nb: *x"`, `"a: 2001-01-01"`, `"a: yes\nb: no\nc: on\nd: off\n"`, `"a: 0x1F\nb: 017\nc: 1e3\nd: 1_000\ne: .5\nf: .inf\n"`, `"{a: b, c: [d]}"`, `"# only\n"`, `"a:\n  b:\n    c: 1\n"`, `"---\na: 1\n"`, `"a: b: c"`, `"[1, 2"`, `"a:\n- 1\n- 2\n"`, `"a: \"\\u00e9\""`, `"a: !!str 1"`, `"k: \nl: ''\n"`},
}

// More of one function than its parameters tell, and all that is no function of text.
var extra = []string{
	`{{with nomadVar "app"}}{{.user}} {{.password}} {{.nope}}|{{range .}}{{.Key}}={{.Value}};{{end}}|{{range $k, $v := .}}{{$k}}={{$v}};{{end}}{{.}}{{end}}`,
	`{{with nomadVar "app"}}{{.Keys}} {{.Values}} {{range .Tuples}}{{.K}}-{{.V}},{{end}} {{.Metadata}} {{.Metadata.Path}} {{.Parent.Namespace}} {{.ItemsMap}} {{len .}} {{index . "port"}}{{end}}`,
	`{{with nomadVar "app"}}{{.user.Key}} {{.user.Value}} {{.user.Metadata.Path}} {{.user | toUpper}}{{end}}`, `{{with nomadVar "app"}}{{toJSON .}} {{.user.Parent.Path}} {{printf "%s" .user}} {{print .user "x"}}{{end}}`,
	`{{with nomadVar "absent"}}x{{else}}none{{end}}`, `{{(nomadVar "absent").x}}`, `{{nomadVar "absent"}}`, `{{nomadVar "absent"}} {{nomadVar "other@ns.reg"}}`, `{{with nomadVar "empty"}}some{{else}}none{{end}}`, `{{nomadVar ""}}`, `{{nomadVar "a@b@c"}}`, `{{nomadVar "/app/"}}`, `{{nomadVar "app" "x"}}`,
	`{{range nomadVarList "app"}}{{.Path}} {{.}} {{.Namespace}} {{.CreateIndex}},{{end}}`, `{{len (nomadVarList "none")}}`, `{{len (nomadVarListSafe "none")}}`, `{{nomadVarList}}`, `{{nomadVarList "a" "b"}}`, `{{nomadVarList "x@*"}}`, `{{nomadVarExists "app"}} {{nomadVarExists "absent"}} {{nomadVarExists "unknown"}} {{nomadVarExists ""}}`,
	`{{range nomadService "web"}}{{.Address}}:{{.Port}} {{.Tags}} {{.Name}} {{.Node}} {{.ID}} {{.JobID}} {{.AllocID}} {{.Datacenter}};{{end}}`, `{{range nomadService "a.web"}}{{.Port}},{{end}}`, `{{range nomadService 1 "k" "web"}}{{.Port}},{{end}}`, `{{range nomadService "none"}}x{{else}}nobody{{end}}`, `{{nomadService 1}}`, `{{nomadService "a" "b"}}`, `{{nomadService "b a d"}}`, `{{nomadService "x" "k" "web"}}`,
	`{{range nomadServices}}{{.Name}} {{.Tags}} {{.Tags | join ","}} {{.Tags | contains "a"}};{{end}}`, `{{nomadServices "@other"}}`, `{{nomadServices "x y"}}`, `{{with nomadService "web"}}{{(index . 0).Address}} {{len .}} {{(index . 1).Nope}}{{end}}`, `{{range $t, $s := nomadService "web" | byTag}}{{$t}}:{{len $s}} {{end}}`, `{{range $p, $s := nomadService "web" | byPort}}{{$p}}:{{(index $s 0).Name}} {{end}}`, `{{range $t, $s := nomadServices | byTag}}{{$t}} {{range $s}}{{.Name}}{{end}};{{end}}`,
	`{{env "N"}} {{env "NOPE"}} {{env "EMPTY"}}|{{envOrDefault "N" "d"}} {{envOrDefault "NOPE" "d"}} {{envOrDefault "EMPTY" "d"}}`, `{{mustEnv "N"}}`, `{{mustEnv "NOPE"}}`, `{{mustEnv "EMPTY"}}`, `{{if eq (env "N") "7"}}seven{{end}}{{range split "," (env "LIST")}}<{{.}}>{{end}}`,
	`{{define "p"}}<{{.}}>{{end}}{{executeTemplate "p" 1}}{{executeTemplate "p"}}`, `{{executeTemplate "nope"}}`, `{{define "bad"}}{{index .}}{{index 1 2}}{{end}}{{executeTemplate "bad" 3}}`, `{{executeTemplate "p" 1 2}}`,
	`{{scratch.Set "a" 1}}{{scratch.Get "a"}}{{scratch.Key "a"}}{{scratch.Key "b"}}{{scratch.SetX "a" 2}}{{scratch.Get "a"}}`, `{{scratch.MapSet "m" "b" 1}}{{scratch.MapSet "m" "a" "x"}}{{scratch.MapSetX "m" "a" "y"}}{{scratch.MapValues "m"}}{{range $k, $v := scratch.Get "m"}}{{$k}}={{$v}} {{end}}`, `{{scratch.Set "a" 1}}{{scratch.MapSet "a" "b" 1}}`, `{{scratch.Get "nope"}}{{scratch.MapValues "nope"}}`, `{{scratch.Nope}}`, `{{scratch.Get}}`, `{{scratch.Set "a"}}`,
	`{{range loop 3}}{{.}}{{end}}{{range loop 1 4}}{{.}},{{end}}{{range $i, $x := loop 5 7}}{{$i}}:{{$x} }{{end}}`, `{{range $i, $x := loop 5 7}}{{$i}}:{{$x}} {{end}}`, `{{loop}}`, `{{loop 1 2 3}}`, `{{loop 2}}`, `{{range loop "2" "4"}}{{.}}{{end}}`, `{{loop "x"}}`, `{{loop true}}`, `{{len (loop 3)}}`,
	`{{plugin "x"}}`, `{{writeToFile "a" "b" "c" "0644" "d"}}`, `{{.}}`, `{{.x}}`, `{{.x.y}}`, `{{$.x}}`, `{{with .}}a{{else}}b{{end}}`, `{{range .}}a{{else}}b{{end}}`, `{{(sprig_dict).a}}`, `{{(parseJSON "{}").a.b}}`, `{{(splitToMap "," "=" "a=1").b}}|`,
	`{{sprig_keys (sprig_dict "k" 1)}} {{sprig_values (sprig_dict "k" 1)}} {{sprig_keys (sprig_dict "b" 1 "a" 2) | sprig_sortAlpha}} {{sprig_keys}} {{sprig_keys nil}} {{sprig_values nil}}`,
	`{{with sprig_semver "v1.2.3-rc.1+b"}}{{.Major}}.{{.Minor}}.{{.Patch}} {{.Prerelease}} {{.Metadata}} {{.Original}} {{.}} {{.String}} {{.Nope}}{{end}}`, `{{$d := sprig_dict "a" 1}}{{$_ := sprig_set $d "b" 2}}{{$d}} {{sprig_hasKey $d "b"}}{{$_ := sprig_unset $d "a"}}{{$d}}`,
	`{{ "3" | parseInt | add 2 }} {{ 10 | divide 2 }} {{ subtract 2 5 }}`, `{{divide 0 1}}`, `{{modulo 0 1}}`, `{{divide 0.0 1}}`, `{{add "a" 1}}`, `{{add 1 nil}}`, `{{timestamp "unix" "x"}}`, `{{mergeMap 1 2}}`, `{{byTag 1}}`, `{{byPort "x"}}`, `{{byTag nil}}`, `{{toTOML (parseJSON "{\"a\":null}")}}`, `{{toTOML 1}}`, `{{toTOML (parseJSON "[]")}}`,
	`{{range $k, $v := parseYAML "b: 1\na: 2\n"}}{{$k}}={{$v}};{{end}}{{(parseYAML "b: {c: d}").b.c}}{{printf "%T" (parseYAML "b: {c: d}")}}`, `{{parseJSON "{\"a\":{\"b\":1}}" | toYAML}}`, `{{parseYAML "a: [x, {y: z}]" | toJSON}}`,
}

func choose(r *rand.Rand, kind byte, wrong bool) string {
	if wrong {
		kind = 'a'
	}
	e := edges[kind]
	return e[r.Intn(len(e))]
}

// Calls with values of the right kind, some with one of another, some with one too many or too few.
func calls(r *rand.Rand, name, params string, n int) {
	dots := strings.HasSuffix(params, ".")
	params = strings.TrimSuffix(params, ".")
	seen := map[string]bool{}
	for tries := 0; len(seen) < n && tries < 4*n; tries++ {
		args := []string{name}
		p := params
		if dots {
			p += strings.Repeat(params[len(params)-1:], r.Intn(4))
			if r.Intn(6) == 0 {
				p = p[:len(params)-1]
			}
		}
		for i := range p {
			args = append(args, choose(r, p[i], r.Intn(10) == 0))
		}
		if r.Intn(25) == 0 {
			args = append(args, choose(r, 'a', false))
		} else if r.Intn(25) == 0 {
			args = args[:len(args)-1]
		}
		if len(args) == 0 {
			args = []string{name}
		}
		call := strings.Join(args, " ")
		text := "{{" + call + "}}"
		if r.Intn(3) == 0 {
			text = `{{printf "%#v" (` + call + `)}}`
		}
		if !seen[text] {
			seen[text] = true
			vectorTask(text)
		}
	}
}

// Chance, time, slow or of another machine.
var left = map[string]bool{"shuffle": true, "genPrivateKey": true, "genCA": true, "genCAWithKey": true, "genSelfSignedCert": true, "genSelfSignedCertWithKey": true,
	"genSignedCert": true, "genSignedCertWithKey": true, "bcrypt": true, "htpasswd": true, "encryptAES": true, "decryptAES": true, "derivePassword": true, "buildCustomCert": true,
	"randInt": true, "ago": true, "date": true, "dateInZone": true, "dateModify": true, "date_in_zone": true, "date_modify": true, "mustDateModify": true, "must_date_modify": true,
	"toDate": true, "mustToDate": true, "unixEpoch": true, "htmlDate": true, "htmlDateInZone": true, "now": true, "hello": true, "randBytes": true, "keys": true, "values": true, "osBase": false, "durationRound": false}

func letter(t reflect.Type, name string, i int) byte {
	switch t.Kind() {
	case reflect.String:
		if strings.HasPrefix(strings.ToLower(strings.TrimPrefix(name, "must")), "regex") && i == 0 {
			return 'x'
		}
		if name == "b64dec" || name == "b32dec" {
			return 'b'
		}
		if strings.HasPrefix(name, "semver") {
			if name == "semverCompare" && i == 0 {
				return 'c'
			}
			return 'v'
		}
		if strings.HasPrefix(name, "url") {
			return 'u'
		}
		if strings.Contains(name, "romJson") {
			return 'j'
		}
		return 's'
	case reflect.Int, reflect.Int64:
		return 'i'
	case reflect.Map:
		if name == "urlJoin" {
			return 'U'
		}
		return 'm'
	case reflect.Slice:
		if t.Elem().Kind() == reflect.String {
			return 'S'
		}
		return 'l'
	default:
		return 'a'
	}
}

func functions(r *rand.Rand, only string) {
	var names []string
	for name := range helpers {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		if only == "" || only == name {
			calls(r, name, helpers[name], 30)
		}
	}
	if only == "" || only == "extra" {
		for _, text := range extra {
			vectorTask(text)
		}
	}
	names = nil
	all := sprig.HermeticTxtFuncMap()
	for name := range all {
		if !left[name] {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	for _, name := range names {
		if only != "" && only != "sprig" && only != "sprig_"+name {
			continue
		}
		t := reflect.TypeOf(all[name])
		params := ""
		for i := 0; i < t.NumIn(); i++ {
			in := t.In(i)
			if t.IsVariadic() && i == t.NumIn()-1 {
				in = in.Elem()
			}
			l := letter(in, name, i)
			if l == 'a' && needsList[strings.TrimPrefix(strings.TrimPrefix(name, "must"), "_")] && i == t.NumIn()-1 {
				l = 'l'
			}
			params += string(l)
		}
		if t.IsVariadic() {
			params += "."
		}
		calls(r, "sprig_"+name, params, 25)
	}
}

var needsList = map[string]bool{"join": true, "first": true, "last": true, "initial": true, "rest": true, "reverse": true, "uniq": true, "sortAlpha": true, "compact": true, "without": false, "Has": true, "Uniq": true, "First": true, "Last": true, "Initial": true, "Rest": true, "Reverse": true, "Compact": true, "Chunk": true, "chunk": true, "has": true, "toStrings": true}
