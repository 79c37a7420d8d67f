// Package sockets has the operations on sockets that the helper needs. Package net
// would increase the size of the helper by half.
package sockets
