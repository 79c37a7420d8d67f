package report

import (
	"fmt"
	"time"

	"github.com/minibench/mini/model"
)

// moneyText formats a cost. It never rounds a positive cost to zero.
func moneyText(c model.Cost) string {
	switch {
	case c >= 0.01 || c <= 0:
		return fmt.Sprintf("$%.2f", float64(c))
	case c >= 0.0001:
		return fmt.Sprintf("$%.4f", float64(c))
	}
	return "under $0.0001"
}

// durationText formats a duration given in seconds.
func durationText(s float64) string {
	switch {
	case s < 0.1 && s > 0:
		return fmt.Sprintf("%.0fms", s*1000)
	case s < 3600:
		return secondsText(s)
	}
	d := time.Duration(s * float64(time.Second)).Round(time.Minute)
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}

// amountText formats a number, with a unit from 10,000.
func amountText(n int64) string {
	switch {
	case n < 10_000:
		return fmt.Sprint(n)
	case n < 999_500:
		return fmt.Sprintf("%.0fk", float64(n)/1e3)
	case n < 10_000_000:
		return fmt.Sprintf("%.2fM", float64(n)/1e6)
	case n < 999_500_000:
		return fmt.Sprintf("%.0fM", float64(n)/1e6)
	}
	return fmt.Sprintf("%.2fG", float64(n)/1e9)
}
