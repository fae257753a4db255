package etcdstore

import (
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// A client asks for another token when a request is refused because of its own, and
// repeats the request. But a stream keeps the token that it was opened with, which may
// expire, or lose its worth when a password or a role is changed.

// stale returns err as one that passes if it says that the token of a stream is good no
// longer, and the client gets another one for the next stream.
func (s *Store) stale(err error) error {
	if err == nil {
		return nil
	}
	known := rpctypes.Error(err)
	password := s.client.Username != "" && s.client.Password != ""
	switch {
	case s.client.Token != "": // the application's own, which nobody can renew
		return err
	case errors.Is(known, rpctypes.ErrAuthOldRevision),
		password && errors.Is(known, rpctypes.ErrInvalidAuthToken),
		password && errors.Is(known, rpctypes.ErrUserEmpty): // it was opened before authentication was enabled
		return fmt.Errorf("the stream is as old as its token: %v", err) //nolint:errorlint // that of another stream is none
	}
	return err
}

// reasonOf returns the error of a watch as etcd's own. The client keeps it as a text.
func reasonOf(err error) error {
	if _, reason, ok := strings.Cut(err.Error(), " desc = "); ok {
		return rpctypes.Error(errors.New(reason))
	}
	return err
}
