package chart

import (
	"fmt"
	"html/template"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/internal/text"
)

// Class is the class of an attempt, written as a letter.
type Class byte

// The classes.
const (
	Resolved       Class = 'R'
	Unresolved     Class = 'U'
	Limit          Class = 'L' // not resolved, and ended by a limit
	Infrastructure Class = 'I' // the provider, the machine or mini failed, not the agent
	Submitted      Class = 'S' // not evaluated
	None           Class = '-' // no attempt, or no verdict
)

// Classes returns all classes, in the order in which charts draw them.
func Classes() (all []Class) {
	for _, c := range cells {
		all = append(all, c.class)
	}
	return all
}

// Name returns the class in words.
func (c Class) Name() string { return c.look().name }

// Part returns a part of a bar for attempts of the class.
func (c Class) Part(size float64) Part {
	return Part{Style: c.look().style, Size: size}
}

func (c Class) look() *look {
	for i := range cells {
		if cells[i].class == c {
			return &cells[i]
		}
	}
	return &cells[len(cells)-1]
}

// Row is an instance with the classes of its attempts.
type Row struct {
	Label string
	Link  string  // address; "" for none
	Cells []Class // one for each column
}

// look is how a class is drawn.
type look struct {
	class       Class
	name, style string
	stroke      float64
	shape       string // in a square of eight units; it ends where it begins
}

// cells lists the classes in the order of legends.
var cells = [...]look{
	{Resolved, "resolved", "resolved", 0, "h8v8h-8z"},
	{Unresolved, "unresolved", "unresolved", 1.2, "m1 1h6v6h-6zm-1-1"},
	{Limit, "limit", "limit", 0, "v8h8z"},
	{Infrastructure, "infrastructure failed", "infra", 1.6, "m1 1 6 6m-6 0 6-6m-7-1"},
	{Submitted, "not evaluated", "submitted", 1.2, "m4 1 3 6h-6zm-4-1"},
	{None, "no result", "none", 1.6, "m2 4h4m-6-4"},
}

// Matrix draws the class of each attempt: a line for each instance, or, from 41
// instances on, a column for each in several bands. A Class that is unknown is
// drawn as None.
func Matrix(title string, columns []string, rows []Row) template.HTML {
	if len(rows) == 0 || len(columns) == 0 {
		return ""
	}
	var c canvas
	place := c.lines
	if len(rows) > 40 || len(columns) > 12 {
		place = c.bands
	}
	counts := map[Class]int{}
	at, height := place(columns, rows)
	k := 0 // place in the legend
	for _, cell := range cells {
		var d strings.Builder
		x, y := 0, 0
		for i, row := range rows {
			for j := range columns {
				if class := row.class(j); class == cell.class {
					toX, toY := at(i, j)
					fmt.Fprintf(&d, "m%d %d%s", toX-x, toY-y, cell.shape)
					x, y = toX, toY
					counts[class]++
				}
			}
		}
		if counts[cell.class] == 0 {
			continue
		}
		legendX, legendY := width/3*(k%3), int(height)+line*(k/3)
		fmt.Fprintf(&d, "m%d %d%s", legendX-x, legendY-y, cell.shape)
		c.path(cell.style, cell.stroke, "M0 0"+d.String())
		name := fmt.Sprintf("%c %s %d", cell.class, cell.name, counts[cell.class])
		c.text(float64(legendX)+14, float64(legendY)+10, "start", name, 20)
		k++
	}
	var items []string
	for _, cell := range cells {
		items = append(items, fmt.Sprintf("%d %s", counts[cell.class], cell.name))
	}
	return c.chart("chart", title, items, height+2*line)
}

// class returns the class in a column.
func (r Row) class(column int) Class {
	if column < len(r.Cells) {
		return r.Cells[column].look().class
	}
	return None
}

// lines writes the labels of a line for each instance, and the names of the columns at a slant
// above them. It returns the place of a cell, and the height.
func (c *canvas) lines(columns []string, rows []Row) (at func(row, column int) (x, y int), height float64) {
	const step, slant = 22, 0.7 // height of a name for its length
	longest := 0
	for _, row := range rows {
		longest = max(longest, ansi.StringWidth(text.Printable(text.ClipRunes(row.Label, 100))))
	}
	left := min(width-step*len(columns), int(charWidth*float64(longest))+step)
	head := 1
	for _, column := range columns {
		head = max(head, min(ansi.StringWidth(text.Printable(text.ClipRunes(column, 100))), maxColumnName))
	}
	top := line + int(slant*charWidth*float64(head))
	for j, column := range columns {
		if j > 0 && column == columns[j-1] {
			continue // a further attempt of the same run
		}
		x := left + step*j + 8
		c.add(`<g transform="rotate(-45 %v %v)">`, x, top)
		c.text(float64(x), float64(top), "start", column, maxColumnName)
		c.add("</g>\n")
	}
	for i, row := range rows {
		c.linked(row.Link, func() { c.text(0, float64(top+line*(i+1))-5, "start", row.Label, columnsIn(left)-1) })
	}
	at = func(row, column int) (x, y int) { return left + step*column, top + line*row + 6 }
	return at, float64(top+line*len(rows)) + 14
}

// linked writes what draw draws, as a link if there is an address.
func (c *canvas) linked(address string, draw func()) {
	if address == "" {
		draw()
		return
	}
	c.add(`<a href="%v">`, address)
	draw()
	c.add("</a>\n")
}

// maxColumnName is the length up to which the name of a column is not cut.
const maxColumnName = 30

// maxRowLinks is the number of instances up to which each column of bands is a link.
const maxRowLinks = 600

// bands is like lines with a column for each instance. The label of a band is that
// of its first instance.
func (c *canvas) bands(columns []string, rows []Row) (at func(row, column int) (x, y int), height float64) {
	const perBand, step = 30, 10
	const left = width - perBand*step
	lineStep := step
	for j := range columns {
		if j > 0 && columns[j] != columns[j-1] && (j == 1 || columns[j-1] != columns[j-2]) {
			lineStep = fontSize // the names of single lines need their height
		}
	}
	bandHeight := lineStep*len(columns) + line + 8
	for first := 0; first < len(rows); first += perBand {
		y := first / perBand * bandHeight
		c.text(left, float64(y)+fontSize, "start", fmt.Sprintf("%d: %s", first+1, rows[first].Label), columnsIn(width-left))
		for j, column := range columns {
			if j == 0 || column != columns[j-1] {
				c.text(left-8, float64(y+line+lineStep*j)+10, "end", column, columnsIn(left-8))
			}
		}
	}
	at = func(row, column int) (x, y int) {
		return left + step*(row%perBand), row/perBand*bandHeight + line + lineStep*column + 1
	}
	for i, row := range rows {
		if row.Link != "" && len(rows) <= maxRowLinks {
			x, y := at(i, 0)
			c.add(`<a href="%v" tabindex="-1"><rect x="%v" y="%v" width="%v" height="%v" fill="transparent"><title>%v</title></rect></a>`+"\n",
				row.Link, x, y, step, lineStep*len(columns), row.Label)
		}
	}
	return at, float64((len(rows)+perBand-1)/perBand*bandHeight) + 4
}
