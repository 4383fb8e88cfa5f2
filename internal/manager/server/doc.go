// Package server is the life of a manager: it opens the database and the listeners, puts the APIs together, starts the background work, and
// ends all of it. Its folders contain the API families. Rules of resources are in the packages that declare them.
package server
