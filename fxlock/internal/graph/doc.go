// Package graph makes constructors by reflection, and gives them the names that fx prints.
//
// The container of fx can't be reached from an option. So a constructor whose parameters
// are known only at run time takes a [Params]: a struct made by reflection that fx fills
// when the application is built. Such a function has no name and no line, so [Located]
// says where the user's own line is.
//
// When fx lacks a type, or meets one twice, it prints the type and its name. A [Rule] is
// there for this name alone: it says what to do.
//
// What goes wrong:
//
//   - two things of which an application can have one: fx refuses the second Rule, whose
//     name is the advice;
//   - fx.Annotate was given something wrong: [Fault] and [Build] return its error;
//   - a version of fx hides a field that is used here: messages name a less helpful place.
package graph
