package checkpoint

// MaxRemembered is how many ids an IDSet remembers.
const MaxRemembered = 1000

// IDSet remembers the newest MaxRemembered ids that were added.
type IDSet struct {
	members map[ID]struct{}
	order   []ID // of arrival; may hold ids that were taken
}

// Len is how many there are.
func (s *IDSet) Len() int { return len(s.members) }

// Has reports whether an id is there.
func (s *IDSet) Has(id ID) bool {
	_, ok := s.members[id]
	return ok
}

// Add puts an id in; the oldest goes when there are too many.
func (s *IDSet) Add(id ID) {
	if s.members == nil {
		s.members = map[ID]struct{}{}
	}
	s.members[id] = struct{}{}
	s.order = append(s.order, id)
	if len(s.order) > MaxRemembered {
		delete(s.members, s.order[0])
		s.order = s.order[1:]
	}
}

// Take removes an id and reports whether it was there.
func (s *IDSet) Take(id ID) bool {
	ok := s.Has(id)
	delete(s.members, id)
	return ok
}
