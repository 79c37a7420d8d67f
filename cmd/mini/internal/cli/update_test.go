package cli_test

import "flag"

var update = flag.Bool("update", false, "rewrite what the scripts compare with")

func updating() bool { return *update }
