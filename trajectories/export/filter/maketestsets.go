//go:build ignore

// This program writes testsets.txt, a list of instance IDs, from files of test sets:
//
//	go run maketestsets.go -o testsets.txt 'SWE-bench Verified=verified.jsonl.gz' 'SWE-bench Lite=lite.jsonl.gz' ...
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"log"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/minibench/mini/datasets"
)

func main() {
	out := flag.String("o", "testsets.txt", "the file to write")
	flag.Parse()
	if flag.NArg() == 0 {
		log.Fatal("usage: maketestsets NAME=FILE...; for an instance in several sets, exports name the first")
	}
	var b bytes.Buffer
	for _, arg := range flag.Args() {
		set, file, _ := strings.Cut(arg, "=")
		src, err := datasets.Local(file, "")
		if err != nil {
			log.Fatal(err)
		}
		rows, err := datasets.Load(context.Background(), []datasets.Source{src}, datasets.AllRows)
		if err != nil {
			log.Fatal(err)
		}
		numbers := map[string][]int{}
		for _, instance := range rows.Instances {
			id := strings.ToLower(instance.ID)
			dash := strings.LastIndexByte(id, '-')
			n, err := strconv.Atoi(id[dash+1:])
			if err != nil {
				log.Fatalf("%s: %v", instance.ID, err)
			}
			numbers[id[:dash]] = append(numbers[id[:dash]], n)
		}
		fmt.Fprintf(&b, "= %s\n", set)
		for _, repo := range slices.Sorted(maps.Keys(numbers)) {
			slices.Sort(numbers[repo])
			b.WriteString(repo)
			for _, n := range numbers[repo] {
				fmt.Fprintf(&b, " %d", n)
			}
			b.WriteByte('\n')
		}
	}
	if err := os.WriteFile(*out, b.Bytes(), 0o644); err != nil {
		log.Fatal(err)
	}
}
