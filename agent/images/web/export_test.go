package web

// NewWithProxy is New with a given proxy function, because the environment is
// read only once.
var NewWithProxy = newFetcher
