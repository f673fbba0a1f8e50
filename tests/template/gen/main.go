// SPDX-License-Identifier: Apache-2.0

// Makes the vectors of tests/template: templates, and what Go's text/template and consul-template give of them. One JSON
// object per line: m is "go" (text/template over the data of the first line) or "task" (consul-template, nothing but the world), t the
// template, o its text or e its mistake, w what it waits for. The first line is the world: what may be asked for.
//
//	go run . [-seed N] [-n N] [-only FUNCTION] > ../vectors
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"regexp"
	"sort"
	"strings"
	"text/template"
	"time"

	dep "github.com/hashicorp/consul-template/dependency"
	ct "github.com/hashicorp/consul-template/template"
	"github.com/hashicorp/nomad/api"
)

type vector struct {
	Mode  string   `json:"m"`
	Text  string   `json:"t"`
	Out   *string  `json:"o,omitempty"`
	Error string   `json:"e,omitempty"`
	Waits []string `json:"w,omitempty"`
}

var (
	world = map[string]any{}
	env   []string
	brain = ct.NewBrain()
	out   = json.NewEncoder(os.Stdout)
	count int
)

// Numbers of JSON as -t has them, and null as an empty list.
func plain(v any) any {
	switch x := v.(type) {
	case json.Number:
		if i, err := x.Int64(); err == nil {
			return int(i)
		}
		f, _ := x.Float64()
		return f
	case map[string]any:
		for k := range x {
			x[k] = plain(x[k])
		}
	case []any:
		for i := range x {
			x[i] = plain(x[i])
		}
	case nil:
		return map[string]any(nil)
	}
	return v
}

func runGo(text, data string) (string, error) {
	var v any
	d := json.NewDecoder(strings.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		panic(err)
	}
	t, err := template.New("format").Parse(text)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	done := make(chan error, 1)
	go func() { done <- t.Execute(&b, plain(v)) }()
	select {
	case err = <-done:
	case <-time.After(2 * time.Second):
		return "", fmt.Errorf("SKIP")
	}
	return b.String(), err
}

func runTask(text string) (o string, waits []string, err error) {
	t, err := ct.NewTemplate(&ct.NewTemplateInput{Contents: text, FunctionDenylist: []string{"plugin", "writeToFile"}})
	if err != nil {
		return "", nil, err
	}
	r, err := t.Execute(&ct.ExecuteInput{Brain: brain, Env: env})
	if err != nil {
		return "", nil, fmt.Errorf("%s", strings.TrimPrefix(strings.TrimPrefix(err.Error(), "parse: "), "execute: "))
	}
	for _, d := range r.Missing.List() {
		waits = append(waits, d.String())
	}
	return string(r.Output), waits, nil
}

// Texts that differ from run to run, or are too long to keep.
var unsteady = regexp.MustCompile(`0xc0[0-9a-f]{8}|0x[0-9a-f]{6,}`)

func emit(v vector) {
	if v.Out != nil && (len(*v.Out) > 4000 || unsteady.MatchString(*v.Out)) || v.Error == "SKIP" {
		return
	}
	if strings.Contains(v.Error, "mergo.Config") || strings.Contains(v.Text, "mergeMap") && strings.Contains(v.Error, "nil pointer") {
		return // its name may be another one in the next version
	}
	if unsteady.MatchString(v.Error) || len(v.Error) > 900 || strings.ContainsRune(v.Error+v.Text, 0) {
		return
	}
	for _, s := range []string{v.Text, v.Error} {
		if !json.Valid([]byte(fmt.Sprintf("%q", s))) && strings.ToValidUTF8(s, "") != s {
			return
		}
	}
	if v.Out != nil && (strings.ToValidUTF8(*v.Out, "") != *v.Out || strings.ContainsRune(*v.Out, 0)) {
		return
	}
	count++
	_ = out.Encode(v)
}

func vectorGo(text string) {
	o, err := runGo(text, data)
	if err != nil {
		emit(vector{Mode: "go", Text: text, Error: err.Error()})
		return
	}
	emit(vector{Mode: "go", Text: text, Out: &o})
}

func vectorTask(text string) {
	defer func() {
		if recover() != nil {
			fmt.Fprintln(os.Stderr, "panic:", text)
		}
	}()
	o, waits, err := runTask(text)
	if err != nil {
		emit(vector{Mode: "task", Text: text, Error: err.Error()})
		return
	}
	sort.Strings(waits)
	emit(vector{Mode: "task", Text: text, Out: &o, Waits: waits})
}

func makeWorld() {
	vars := map[string]map[string]string{
		"app":      {"user": "root", "password": "s3cr<t", "port": "8080"},
		"app/deep": {"a": "1"},
		"empty":    {},
	}
	for path, items := range vars {
		v := &api.Variable{Namespace: "default", Path: path, Items: items, CreateIndex: 10, ModifyIndex: 12}
		world["nomad.var.block("+path+"@default.global)"] = v
		world["nomad.var.get("+path+"@default.global)"] = true
		d, _ := dep.NewNVGetQuery("default", path)
		brain.Remember(d, &dep.NewNomadVariable(v).Items)
		d.EnableBlocking()
		brain.Remember(d, &dep.NewNomadVariable(v).Items)
	}
	absent, _ := dep.NewNVGetQuery("default", "absent")
	brain.Remember(absent, nil)
	world["nomad.var.get(absent@default.global)"] = false
	var metas []*api.VariableMetadata
	var list []*dep.NomadVarMeta
	for _, path := range []string{"app", "app/deep"} {
		m := &api.VariableMetadata{Namespace: "default", Path: path, CreateIndex: 10, ModifyIndex: 12}
		metas = append(metas, m)
		list = append(list, dep.NewNomadVarMeta(m))
	}
	ld, _ := dep.NewNVListQuery("default", "app")
	brain.Remember(ld, list)
	world[ld.String()] = metas
	none, _ := dep.NewNVListQuery("default", "none")
	brain.Remember(none, []*dep.NomadVarMeta{})
	world[none.String()] = []any{}
	services := []*dep.NomadService{
		{ID: "_nomad-1", Name: "web", Node: "n1", Address: "10.0.0.1", Port: 8080, Datacenter: "dc1", Tags: []string{"a", "b"}, JobID: "j", AllocID: "x"},
		{ID: "_nomad-2", Name: "web", Node: "n2", Address: "10.0.0.2", Port: 8081, Datacenter: "dc1", Tags: []string{"b"}, JobID: "j", AllocID: "y"},
	}
	var regs []map[string]any
	for _, s := range services {
		regs = append(regs, map[string]any{"ID": s.ID, "ServiceName": s.Name, "NodeID": s.Node, "Address": s.Address, "Port": s.Port,
			"Datacenter": s.Datacenter, "Tags": s.Tags, "JobID": s.JobID, "AllocID": s.AllocID, "Namespace": "default"})
	}
	for _, name := range []string{"web", "a.web", "b.web"} {
		q, _ := dep.NewNomadServiceQuery(name)
		var some []*dep.NomadService
		for _, s := range services {
			if name == "web" || strings.Contains(strings.Join(s.Tags, ","), name[:1]) {
				some = append(some, s)
			}
		}
		brain.Remember(q, some)
		world[q.String()] = regs
	}
	q, _ := dep.NewNomadServiceChooseQuery(1, "k", "web")
	brain.Remember(q, services[:1])
	world[q.String()] = regs[:1]
	sq, _ := dep.NewNomadServicesQuery("")
	brain.Remember(sq, []*dep.NomadServicesSnippet{{Name: "db", Tags: []string{}}, {Name: "web", Tags: []string{"a", "b"}}})
	world[sq.String()] = []map[string]any{{"ServiceName": "web", "Tags": []string{"b", "a"}}, {"ServiceName": "db", "Tags": []string{}}}
	for k, v := range map[string]string{"NOMAD_TASK_NAME": "t", "EMPTY": "", "N": "7", "LIST": "a,b,c"} {
		world["env."+k] = v
		env = append(env, k+"="+v)
	}
}

func main() {
	seed := flag.Int64("seed", 1, "of the generated templates")
	n := flag.Int("n", 3000, "generated templates")
	only := flag.String("only", "", "a function")
	flag.Parse()
	out.SetEscapeHTML(false)
	makeWorld()
	_ = out.Encode(map[string]any{"world": world, "data": data})
	if *only == "" {
		fixed()
		g := &generator{r: rand.New(rand.NewSource(*seed))}
		for i := 0; i < *n; i++ {
			g.one()
		}
	}
	functions(rand.New(rand.NewSource(*seed)), *only)
	fmt.Fprintln(os.Stderr, count, "vectors")
}
