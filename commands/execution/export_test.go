package execution

import "time"

// HurryProof shortens how long after its limit an end may still be proven.
func (f *Fleet) HurryProof(d time.Duration) { f.proof = d }
