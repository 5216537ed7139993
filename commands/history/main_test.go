package history_test

import "os"

// soak lengthens what can run long (make soak).
var soak = os.Getenv("WEBCODEX_SOAK") != ""
