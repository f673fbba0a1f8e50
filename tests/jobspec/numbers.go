// SPDX-License-Identifier: Apache-2.0

// Random numeric expressions, evaluated here by math/big with 512 bits and by the program that is named, which reads
// them line by line: what differs is printed, and the end is 1 then. usage: numbers EVALUATE COUNT SEED
package main

import (
	"bufio"
	"fmt"
	"math/big"
	"math/rand"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

const bits = 512
const expMax = 65536 // NUMBER_EXP2_MAX of jobspec/limits.h

var rnd *rand.Rand

func digits(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('0' + rnd.Intn(10))
	}
	if n > 1 && b[0] == '0' {
		b[0] = '1'
	}
	return string(b)
}

func parsed(s string) *big.Float {
	f, _, err := big.ParseFloat(s, 10, bits, big.ToNearestEven)
	if err != nil {
		panic(s)
	}
	return f
}

func literal() (string, *big.Float) {
	var s string
	switch rnd.Intn(8) {
	case 0, 1:
		s = strconv.Itoa(rnd.Intn(20))
	case 2:
		s = strconv.Itoa(rnd.Intn(20)) + "." + digits(1+rnd.Intn(3))
	case 3:
		s = digits(1 + rnd.Intn(40))
	case 4:
		s = digits(1+rnd.Intn(20)) + "." + digits(1+rnd.Intn(180))
	case 5:
		s = digits(1+rnd.Intn(5)) + "." + digits(1+rnd.Intn(5)) + "e" + strconv.Itoa(rnd.Intn(700)-350)
	case 6:
		s = []string{"9223372036854775807", "9223372036854775808", "18446744073709551616", "9007199254740993", "1e200", "0.1",
			"1e-200", "0", "0.0", "1099511627776"}[rnd.Intn(10)]
	default:
		s = "1" + strings.Repeat("0", rnd.Intn(30))
	}
	if rnd.Intn(8) == 0 { // text that is a number
		return `("` + s + `" * 1)`, parsed(s)
	}
	return s, parsed(s)
}

func maxPrec(x, y *big.Float) uint {
	if x.Prec() > y.Prec() {
		return x.Prec()
	}
	return y.Prec()
}

// nil: there is no result.
func operate(op byte, x, y *big.Float) *big.Float {
	z := new(big.Float)
	switch op {
	case '+':
		z.Add(x, y)
	case '-':
		z.Add(x, new(big.Float).Neg(y))
	case '*':
		z.SetPrec(bits).Mul(x, y)
		prec := maxPrec(x, y)
		if z.MinPrec() > prec {
			prec = z.MinPrec()
		}
		z.SetPrec(prec)
	default:
		if y.Sign() == 0 {
			return nil
		}
		q := new(big.Float).Quo(x, y)
		if op == '/' {
			return q
		}
		whole, _ := q.Int(nil)
		w := new(big.Float).SetPrec(x.Prec()).SetInt(whole)
		w.Mul(y, w)
		z.SetPrec(x.Prec()).Sub(x, w)
	}
	return z
}

func whole(x *big.Float, up bool) *big.Float {
	i, acc := x.Int(nil)
	if up && acc == big.Below {
		i.Add(i, big.NewInt(1))
	} else if !up && acc == big.Above {
		i.Sub(i, big.NewInt(1))
	}
	return new(big.Float).SetPrec(x.Prec()).SetInt(i)
}

func fits(x *big.Float) bool {
	e := x.MantExp(nil)
	return x.Sign() == 0 || e <= expMax && e >= -expMax
}

func arith(depth int) (string, *big.Float) {
	if depth == 0 {
		return literal()
	}
	s, x := arith(depth - 1 - rnd.Intn(depth))
	if x == nil {
		return s, nil
	}
	switch rnd.Intn(10) {
	case 0:
		return "-(" + s + ")", new(big.Float).Neg(x)
	case 1:
		return "abs(" + s + ")", new(big.Float).Abs(x)
	case 2:
		return "ceil(" + s + ")", whole(x, true)
	case 3:
		return "floor(" + s + ")", whole(x, false)
	case 4:
		return `("${` + s + `}${""}" + 0)`, operate('+', parsed(x.Text('f', -1)), new(big.Float).SetPrec(bits)) // to text and back
	}
	t, y := arith(depth - 1 - rnd.Intn(depth))
	if y == nil {
		return t, nil
	}
	if rnd.Intn(8) == 0 {
		if y.Cmp(x) < 0 {
			return "min(" + s + ", " + t + ")", y
		}
		return "min(" + s + ", " + t + ")", x
	}
	op := "+-*/%"[rnd.Intn(5)]
	z := operate(op, x, y)
	if z == nil || !fits(z) || op == '%' && !fits(new(big.Float).Quo(x, y)) {
		return "(" + s + ")" + string(op) + "(" + t + ")", nil
	}
	return "(" + s + ") " + string(op) + " (" + t + ")", z
}

func expression() (string, string) {
	s, x := arith(1 + rnd.Intn(4))
	if x == nil {
		return s, "error"
	}
	switch rnd.Intn(8) {
	case 0:
		t, y := arith(1 + rnd.Intn(2))
		if y == nil {
			return t, "error"
		}
		op := []string{"<", ">"}[rnd.Intn(2)]
		return "(" + s + ") " + op + " (" + t + ")", strconv.FormatBool((x.Cmp(y) < 0) == (op == "<") && x.Cmp(y) != 0)
	case 1:
		verb := []string{"%d", "%+08d", "%x", "%o", "%b", "%-30d|"}[rnd.Intn(6)]
		i, _ := whole(x, x.Sign() < 0).Int(nil)
		f := "floor("
		if x.Sign() < 0 {
			f = "ceil("
		}
		return `format("` + verb + `", ` + f + s + "))", strconv.Quote(fmt.Sprintf(verb, i))
	case 2:
		verb := []string{"%f", "%.3f", "%e", "%.0e", "%g", "%.10g", "%+12.2f", "%G", "%.0f", "%015.4e"}[rnd.Intn(10)]
		return `format("` + verb + `", ` + s + ")", strconv.Quote(fmt.Sprintf(verb, x))
	}
	return s, x.Text('f', -1)
}

func main() {
	count, _ := strconv.Atoi(os.Args[2])
	seed, _ := strconv.ParseInt(os.Args[3], 10, 64)
	rnd = rand.New(rand.NewSource(seed))
	lines, want := make([]string, count), make([]string, count)
	for i := range lines {
		lines[i], want[i] = expression()
	}
	cmd := exec.Command(os.Args[1])
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	in := bufio.NewReaderSize(out, 1<<20)
	bad := 0
	for i := range lines {
		got, err := in.ReadString('\n')
		got = strings.TrimSuffix(got, "\n")
		if strings.HasPrefix(got, "error") {
			got = "error"
		}
		if err != nil || got != want[i] {
			if bad++; bad <= 5 {
				fmt.Printf("%s\n  here  %s\n  there %s\n", lines[i], want[i], got)
			}
		}
	}
	if err := cmd.Wait(); err != nil {
		fmt.Println(err)
		bad++
	}
	fmt.Printf("%d expressions of seed %d, %d differ\n", count, seed, bad)
	if bad > 0 {
		os.Exit(1)
	}
}
