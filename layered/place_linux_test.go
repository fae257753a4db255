package layered

import "testing"

func TestOwnTemp_IsSeenInTheMounts(t *testing.T) {
	const (
		root    = "25 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
		other   = "500 400 0:60 / / rw,relatime - overlay overlay rw,lowerdir=/x\n"
		mounted = "30 25 0:25 / /tmp rw,nosuid - tmpfs tmpfs rw\n"
		own     = "300 200 0:77 / /tmp rw - tmpfs tmpfs rw\n"
		private = "301 200 254:0 /tmp/systemd-private-5c1-reports.service-X2/tmp /tmp rw - ext4 /dev/vda rw\n"
		onTemp  = "301 200 0:25 /systemd-private-5c1-reports.service-X2/tmp /tmp rw - tmpfs tmpfs rw\n"
	)
	for name, tt := range map[string]struct {
		own, first string
		want       bool
	}{
		"the system's":                        {root, root, false},
		"the system's, mounted":               {root + mounted, root + mounted, false},
		"PrivateTmp":                          {root + private, root, true},
		"PrivateTmp, of a mounted one":        {root + onTemp, root + mounted, true},
		"PrivateTmp=disconnected":             {root + own, root + mounted, true},
		"PrivateTmp, the first hidden":        {root + private, "", true},
		"hidden":                              {root + mounted, "", false},
		"a container":                         {other, other, false},
		"a container that shares the numbers": {other, root + mounted, false},
		"a container with a volume":           {other + own, root + mounted, false},
		"nonsense":                            {"\n1 2\n", "x", false},
	} {
		if got := ownTemp(tt.own, tt.first); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
