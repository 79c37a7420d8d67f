// Package images looks after the images of a container engine: it pulls what
// sandboxes need, ahead of them where it may, and keeps the disk from filling.
//
// A Store pulls each image once however many wait for it, spreads pulls over
// time as registries ask for, stays within a budget of bytes by removing what
// it pulled itself and nobody uses, and lets starts wait while the engine's
// disk is nearly full. What it pulled is remembered in a file per engine, which
// several minis share; an image that is not in that file is never removed.
//
// The package sees the engine and the registry by small interfaces, and links
// neither of their clients.
//
//	store, err := images.New(engine, images.Host{...}, images.Config{Budget: 80e9})
//	defer store.Expect(needs)()
//	found, release, err := store.Ensure(ctx, needs[0])
//	defer release()
package images
