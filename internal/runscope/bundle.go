package runscope

import (
	"reflect"
	"strconv"

	"go.uber.org/dig"
)

// bundle is the shape of one constructor that gives many values. dig handles one
// constructor of n values much faster than n constructors. Values without a name
// or a group are results of their own, which dig likes best; the others are the
// fields of one dig.Out struct behind them.
type bundle struct {
	fn     reflect.Type // nil when there is nothing to give
	plain  []int        // which values are results of their own
	tagged []int        // which values are fields of out
	out    reflect.Type // nil when nothing is tagged
}

// newBundle returns the bundle of those keys that are wanted. The values given to
// its methods have the order of keys.
func newBundle(keys []Key, wanted func(i int) bool) bundle {
	var b bundle
	var results []reflect.Type
	outFields := []reflect.StructField{{Name: "Out", Type: outType, Anonymous: true}}
	for i, k := range keys {
		switch {
		case !wanted(i):
		case k.Name == "" && k.Group == "":
			b.plain = append(b.plain, i)
			results = append(results, k.Type)
		default:
			b.tagged = append(b.tagged, i)
			outFields = append(outFields, field(len(b.tagged)-1, k, k.outTag()))
		}
	}
	if b.tagged != nil {
		b.out = reflect.StructOf(outFields)
		results = append(results, b.out)
	}
	if results != nil {
		b.fn = reflect.FuncOf(nil, results, false)
	}
	return b
}

// constructor returns a function of type b.fn that gives the values.
func (b *bundle) constructor(values []reflect.Value) any {
	results := make([]reflect.Value, 0, len(b.plain)+1)
	for _, i := range b.plain {
		results = append(results, values[i])
	}
	if b.out != nil {
		out := reflect.New(b.out).Elem()
		for at, i := range b.tagged {
			out.Field(at + 1).Set(values[i])
		}
		results = append(results, out)
	}
	return reflect.MakeFunc(b.fn, func([]reflect.Value) []reflect.Value { return results }).Interface()
}

// field returns field i of a dig struct made by reflection; dig's own marker is
// field 0, so it is found at i+1.
func field(i int, k Key, tags reflect.StructTag) reflect.StructField {
	return reflect.StructField{Name: "F" + strconv.Itoa(i), Type: k.fieldType(), Tag: tags}
}

// inStruct returns struct{ dig.In; F0 T0; F1 T1 ... } for leaves.
func inStruct(leaves []Leaf) reflect.Type {
	fields := []reflect.StructField{{Name: "In", Type: inType, Anonymous: true}}
	for i, l := range leaves {
		fields = append(fields, field(i, l.Key, l.inTag()))
	}
	return reflect.StructOf(fields)
}

// judge asks dig whether it takes fn as a constructor, on its own. Cycles are the
// business of the dry run.
func judge(fn any, opts ...dig.ProvideOption) error {
	return reason(dig.New(deferred...).Provide(fn, opts...))
}

// judgeParams asks dig whether a function can have these parameters.
func judgeParams(types []reflect.Type) error {
	fn := reflect.FuncOf(types, []reflect.Type{reflect.TypeFor[struct{}]()}, false)
	return judge(reflect.Zero(fn).Interface())
}

// judgeKey asks dig whether it can hold a value under k.
func judgeKey(k Key) error {
	b := newBundle([]Key{k}, all)
	return judge(reflect.Zero(b.fn).Interface())
}

func all(int) bool { return true }
