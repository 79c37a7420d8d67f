// Package unit formats numbers with their units for people: money, durations, sizes,
// counts and shares. All texts, tables and pages use these forms.
package unit

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// Money formats US dollars: "$12.34", "$0.0042", "<$0.0001". A positive amount is never
// rounded to zero.
func Money(dollars float64) string {
	switch {
	case dollars > 0 && dollars < 0.0001:
		return "<$0.0001"
	case dollars > 0 && dollars < 0.01:
		return fmt.Sprintf("$%.4f", dollars)
	case dollars >= 9999.5:
		return fmt.Sprintf("$%.0f", dollars)
	}
	return fmt.Sprintf("$%.2f", dollars)
}

// MoneyColumn returns the format of amounts in a column with these amounts: all have the
// same number of decimals, four if the column has small amounts only.
func MoneyColumn(amounts ...float64) func(dollars float64) string {
	small, most := false, 0.0
	for _, d := range amounts {
		small, most = small || d > 0 && d < 0.1, max(most, d)
	}
	decimals, least, less := 2, 0.01, "<$0.01"
	if small && most < 1 {
		decimals, least, less = 4, 0.0001, "<$0.0001"
	}
	return func(dollars float64) string {
		if dollars > 0 && dollars < least {
			return less
		}
		return fmt.Sprintf("$%.*f", decimals, dollars)
	}
}

// Cost formats what something cost. known is false if a part of it has no price.
func Cost(dollars float64, known bool) string {
	return cost(dollars, known, Money)
}

// CostColumn is to Cost what MoneyColumn is to Money.
func CostColumn(amounts ...float64) func(dollars float64, known bool) string {
	money := MoneyColumn(amounts...)
	return func(dollars float64, known bool) string { return cost(dollars, known, money) }
}

func cost(dollars float64, known bool, money func(float64) string) string {
	switch {
	case !known && dollars > 0:
		return money(dollars) + " + ?"
	case !known:
		return "?"
	case dollars == 0:
		return "-"
	}
	return money(dollars)
}

// Duration formats a duration: "40ms", "7.2s", "42s", "3m07s", "1h02m", "4d03h". It has at
// most six columns below 1,000 days.
func Duration(d time.Duration) string {
	switch seconds := d.Round(time.Second); {
	case d <= 0:
		return "0s"
	case d < 100*time.Millisecond:
		return fmt.Sprintf("%dms", max(1, d.Round(time.Millisecond).Milliseconds()))
	case d.Round(100*time.Millisecond) < 10*time.Second:
		return strconv.FormatFloat(math.Round(d.Seconds()*10)/10, 'f', -1, 64) + "s"
	case seconds < time.Minute:
		return fmt.Sprintf("%ds", seconds/time.Second)
	case seconds < time.Hour:
		return fmt.Sprintf("%dm%02ds", seconds/time.Minute, seconds/time.Second%60)
	}
	minutes := d.Round(time.Minute)
	if minutes < 100*time.Hour {
		return fmt.Sprintf("%dh%02dm", minutes/time.Hour, minutes/time.Minute%60)
	}
	return fmt.Sprintf("%dd%02dh", minutes/(24*time.Hour), minutes/time.Hour%24)
}

// Seconds is Duration for a number of seconds.
func Seconds(s float64) string { return Duration(time.Duration(s * float64(time.Second))) }

// Count formats a number, from 10,000 on with three digits and a unit: "9999", "12.3k",
// "1.5M".
func Count(n int64) string {
	if n < 10_000 {
		return strconv.FormatInt(n, 10)
	}
	return scaled(float64(n), "", "k", "M", "G", "T")
}

// Number formats a number with all its digits: "1,234,567".
func Number[N int | int64](n N) string {
	s := strconv.FormatInt(int64(n), 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Size formats a number of bytes with three digits and a decimal unit: "1.5 GB".
func Size(bytes int64) string {
	return scaled(float64(bytes), " B", " kB", " MB", " GB", " TB", " PB")
}

// scaled formats a number with three significant digits and the unit that fits it; each
// unit is 1,000 times the one before.
func scaled(v float64, units ...string) string {
	for i, unit := range units {
		if v < 999.5 || i == len(units)-1 {
			digits := 0
			for limit := 99.95; v < limit && digits < 2; limit /= 10 {
				digits++
			}
			scale := math.Pow10(digits)
			return strconv.FormatFloat(math.Round(v*scale)/scale, 'f', -1, 64) + unit
		}
		v /= 1000
	}
	return ""
}

// Percent formats a share with one decimal: 0.123 is "12.3%".
func Percent(share float64) string { return Points(share) + "%" }

// Points is Percent without the sign.
func Points(share float64) string {
	text := strconv.FormatFloat(100*share, 'f', 1, 64)
	if text == "-0.0" {
		return "0.0"
	}
	return text
}

// Range formats an interval of shares as "12.3 to 45.6", in per cent.
func Range(low, high float64) string { return Points(low) + " to " + Points(high) }
