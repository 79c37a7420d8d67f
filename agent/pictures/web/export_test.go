package web

// Behind is New with proxies of a test's own, for the environment is read once.
var Behind = behind
