// Package control takes orders to a run that goes on from other processes of its
// user, and gives them: a unix socket, with one line of JSON in and one out.
//
// The socket is in the user's runtime folder, under a short name, since the path
// of a socket has 107 bytes at most. control.json in the folder of the run says
// where, as long as the run goes on. Who is not the user, or root, is not heard;
// who says nothing, or nonsense, is not waited for.
//
//	s, err := control.Listen(folder.Dir(), desk)
//	defer s.Close()
//
//	reply, err := control.Ask(ctx, dir, control.Request{Verb: "pause"})
//
// It does not know how an order is followed: that is runner.Control.
package control
