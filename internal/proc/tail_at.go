package proc

// NewTailAt keeps the last keep bytes of a stream of which the first ones went by unseen.
func NewTailAt(keep int, unseen int64) *Tail { return &Tail{keep: keep, total: unseen} }

// Skip counts bytes that went by unseen. What was kept before them is dropped: it would not be
// next to what follows.
func (t *Tail) Skip(n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n > 0 {
		t.total += n
		t.buf = t.buf[:0]
	}
}
