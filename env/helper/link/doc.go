// Package link makes one byte stream in each direction of several connections that may
// break, so that a conversation with a helper survives them: an exec stream of a
// Kubernetes pod ends with each restart of the API server or the kubelet.
//
// Each end keeps what the other has not acknowledged and sends it again over the next
// connection. A break is invisible to the readers and writers of the stream; it ends
// only with Close, or with an error that another connection cannot mend.
//
// # Connections
//
// The client, which makes the connections, sends a greeting, and the server responds:
//
//	client:  8 bytes  "minilink"
//	         byte     1: the first connection, with a key; 2: another one
//	        32 bytes  random
//	        32 bytes  the key of the link, or zeros
//	server:  8 bytes  "minilink"
//	        32 bytes  random
//
// The key of a direction is the HMAC-SHA256, with the key of the link, of a letter for
// the direction and both random values. A server takes the key of the first connection
// on which the client then proves that it knows it, and no other key afterwards. Then
// both ends send records:
//
//	uint32   length of the data, at most MaxData
//	byte     kind
//	uint64   offset of the data in the stream
//	uint64   number of bytes received of the other direction
//	...      data
//	16 bytes HMAC-SHA256 of the above and the number of the record, truncated
//
// Numbers are big endian. The first record of a connection has no data; it tells the
// other end where to continue. A process without the key cannot make records. A
// connection on which a record is changed, repeated or left out ends with ErrForged.
package link
