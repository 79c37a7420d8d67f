// Package imagestore manages the images of a container engine. It pulls the images that
// sandboxes need, in advance if configured, and prevents them from filling the disk.
//
// A Store pulls each image once for all waiting callers and respects the rate
// limits of registries. It keeps the images that mini pulled or built within a budget
// of bytes by removing unused ones. It delays starts while the engine's disk is
// nearly full. A state file per engine, shared by all mini processes, lists the images
// that mini pulled or built. Store never removes an image that is not in the file.
//
// The package uses the engine and the registry through small interfaces and does
// not import their clients.
//
//	store, err := imagestore.New(engine, imagestore.EngineInfo{...}, imagestore.Config{Budget: 80e9})
//	defer store.Prefetch(ctx, requests)()
//	found, release, err := store.Ensure(ctx, requests[0])
//	defer release()
package imagestore
