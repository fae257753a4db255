package redisstore

import (
	_ "embed"

	"github.com/redis/go-redis/v9"
)

// Every decision is made in one of these, on the server, by its clock.
var (
	//go:embed acquire.lua
	acquireText string
	//go:embed renew.lua
	renewText string
	//go:embed release.lua
	releaseText string
	//go:embed undo.lua
	undoText string
	//go:embed inspect.lua
	inspectText string

	acquireScript = redis.NewScript(acquireText)
	renewScript   = redis.NewScript(renewText)
	releaseScript = redis.NewScript(releaseText)
	undoScript    = redis.NewScript(undoText)
	inspectScript = redis.NewScript(inspectText)
)
