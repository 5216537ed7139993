package eventlog

import "testing"

func TestMountedAs(t *testing.T) {
	const mounts = `24 30 0:22 / /proc rw,nosuid - proc proc rw
31 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
32 31 7:0 / /mnt/a\040b rw shared:5 - xfs /dev/loop0 rw,attr2
33 31 7:1 / /mnt/c rw - ext4 /dev/loop1 rw,nobarrier
broken
`
	for device, want := range map[string]string{"254:0": "ext4", "7:0": "xfs", "7:1": "ext4 without barriers", "8:1": "", "24": ""} {
		if got, ok := mountedAs(mounts, device); got != want || ok != (want != "") {
			t.Errorf("%s is %q", device, got)
		}
	}
}
