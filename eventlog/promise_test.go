package eventlog

import (
	"strings"
	"testing"
)

// Status claims what was proven and no more: nothing is lost only on a file system under
// which power was cut in tests, and process durability never claims it.
func TestPromiseClaimsWhatWasTested(t *testing.T) {
	for _, c := range []struct {
		mode     Durability
		system   string
		survives string
		loses    string
	}{
		{Always, "ext4", SurvivesPowerLoss, "nothing that was acknowledged, where"},
		{Group, "xfs", SurvivesPowerLoss, "nothing that was acknowledged, where"},
		{Group, "btrfs", SurvivesProcessKill, "not tested on btrfs"},
		{Always, "ext4 without barriers", SurvivesProcessKill, "not tested on ext4 without barriers"},
		{Process, "ext4", SurvivesProcessKill, "about the last two seconds"},
		{Process, "tmpfs", SurvivesProcessKill, "about the last two seconds"},
	} {
		p := promise(c.mode, "default", c.system)
		if p.Survives != c.survives || !strings.HasPrefix(p.CutLoses, c.loses) || p.Mode != c.mode || p.FileSystem != c.system || p.Reason != "default" {
			t.Errorf("%s on %s: %+v", c.mode, c.system, p)
		}
	}
	l := open(t, t.TempDir(), func(o *Options) { o.Durability, o.Reason = Group, "--durability" })
	if p := l.Status().Promise; p.Mode != Group || p.Reason != "--durability" || p.FileSystem == "" {
		t.Errorf("%+v", p)
	}
}
