package codec

import "fmt"

// keyProblem says why n cannot be a key, or nil: two keys are one exactly when their encodings are equal. The hash of keys is stricter than the keys of a map in state.
func (n *node) keyProblem(path string, hash bool) error {
	switch n.kind {
	case kindPointer, kindProto:
		return fmt.Errorf("%s is a pointer, which cannot be a key: use what it points to", path)
	case kindTime:
		return fmt.Errorf("%s is a time, which cannot be a key (equal instants differ by their location): use its UnixNano", path)
	case kindFloat32, kindFloat64:
		if hash {
			return fmt.Errorf("%s is a float, which cannot be a key (NaN is not equal to itself): use an integer or a string", path)
		}
	case kindBinary:
		if hash {
			return fmt.Errorf("%s is of type %s, which marshals itself and cannot be a key: use an integer or a string", path, n.name)
		}
	case kindArray:
		return n.elem.keyProblem(path+"[]", hash)
	case kindStruct:
		if n.partial {
			return fmt.Errorf("%s has a field tagged `weir:\"-\"` and cannot be a key: different keys would be one", path)
		}
		for _, f := range n.fields {
			if err := f.node.keyProblem(path+"."+f.name, hash); err != nil {
				return err
			}
		}
	}
	return nil
}

// keepsKeys tells whether different keys that were written as w stay different as t: no part of them may be left out.
func keepsKeys(w, t *node) bool {
	switch w.kind {
	case kindArray:
		return keepsKeys(w.elem, t.elem)
	case kindStruct:
		for _, wf := range w.fields {
			tf := t.field(wf.name)
			if tf == nil || !keepsKeys(wf.node, tf.node) {
				return false
			}
		}
	}
	return true
}
