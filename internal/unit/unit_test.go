package unit_test

import (
	"testing"
	"time"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/unit"
)

func TestForms(t *testing.T) {
	tests := []struct{ got, want string }{
		{unit.Money(0), "$0.00"},
		{unit.Money(12.345), "$12.35"},
		{unit.Money(0.00421), "$0.0042"},
		{unit.Money(0.00001), "<$0.0001"},
		{unit.Money(123456.7), "$123457"},
		{unit.Cost(0, true), "-"},
		{unit.Cost(0, false), "?"},
		{unit.Cost(0.5, false), "$0.50 + ?"},
		{unit.CostColumn(0.5, 12)(0.5, true), "$0.50"},
		{unit.CostColumn(0.5, 0.0042)(0.5, true), "$0.5000"},
		{unit.CostColumn(12, 0.0042)(0.0042, true), "<$0.01"},
		{unit.CostColumn(12, 0.0042)(12, false), "$12.00 + ?"},
		{unit.Duration(0), "0s"},
		{unit.Duration(time.Microsecond), "1ms"},
		{unit.Duration(42 * time.Millisecond), "42ms"},
		{unit.Duration(7240 * time.Millisecond), "7.2s"},
		{unit.Duration(7 * time.Second), "7s"},
		{unit.Duration(9960 * time.Millisecond), "10s"},
		{unit.Duration(59700 * time.Millisecond), "1m00s"},
		{unit.Duration(187 * time.Second), "3m07s"},
		{unit.Duration(time.Hour - 400*time.Millisecond), "1h00m"},
		{unit.Duration(62 * time.Minute), "1h02m"},
		{unit.Duration(99 * time.Hour), "99h00m"},
		{unit.Duration(99 * time.Hour * 2), "8d06h"},
		{unit.Seconds(0.25), "0.3s"},
		{unit.Count(9999), "9999"},
		{unit.Count(12345), "12.3k"},
		{unit.Count(999_499), "999k"},
		{unit.Count(999_600), "1M"},
		{unit.Count(1_500_000), "1.5M"},
		{unit.Size(0), "0 B"},
		{unit.Size(999), "999 B"},
		{unit.Size(1_234_000), "1.23 MB"},
		{unit.Size(999_999_999), "1 GB"},
		{unit.Percent(0.1234), "12.3%"},
		{unit.Percent(-0.0001), "0.0%"},
		{unit.Range(0.1, 0.345), "10.0 to 34.5"},
	}
	for _, test := range tests {
		assert.Equal(t, test.want, test.got)
	}
}
