package chart

// Number is for tests.
var Number = number
