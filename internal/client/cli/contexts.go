package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"go.yaml.in/yaml/v3"
)

// Context is a manager that commands talk to where nothing else is said, and what they tell it.
type Context struct {
	URL   string `yaml:"url"`
	Token string `yaml:"token,omitempty"`
	// TokenID is the id of the token where login made it; logout revokes it.
	TokenID string `yaml:"tokenId,omitempty"`
	// CA is a file with the authority to trust beside the system's.
	CA string `yaml:"ca,omitempty"`
	// Configuration and View are the names of those that are meant where a command says none.
	Configuration string `yaml:"configuration,omitempty"`
	View          string `yaml:"view,omitempty"`
}

// Contexts are those of a user, in a file that nobody else reads.
type Contexts struct {
	// Current is the name of the one that holds.
	Current  string             `yaml:"current"`
	Contexts map[string]Context `yaml:"contexts"`
	path     string
}

// ContextsPath is where the contexts of whoever runs the program are: what PORTOLAN_CONTEXTS says, or portolan/contexts.yaml in the
// directory that the system has for configuration.
func ContextsPath() (string, error) {
	if path := os.Getenv("PORTOLAN_CONTEXTS"); path != "" {
		return path, nil
	}
	dir, err := os.UserConfigDir()
	return filepath.Join(dir, "portolan", "contexts.yaml"), err
}

// ReadContexts reads them. Where there is no file, or nobody has a home, there is none.
func ReadContexts() (c Contexts, err error) {
	c.Contexts = map[string]Context{}
	if c.path, err = ContextsPath(); err != nil {
		c.path = ""
		return c, nil //nolint:nilerr // a service has no home, and no contexts
	}
	text, err := os.ReadFile(c.path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("reading the contexts: %w", err)
	}
	if err := yaml.Unmarshal(text, &c); err != nil {
		return c, fmt.Errorf("%s is no file of contexts: %w", c.path, err)
	}
	if c.Contexts == nil {
		c.Contexts = map[string]Context{}
	}
	return c, nil
}

// Get gives a context by its name, or the one that holds; the zero Context where none does.
func (c Contexts) Get(name string) (Context, error) {
	at := cmp.Or(name, c.Current)
	one, there := c.Contexts[at]
	if at != "" && !there {
		return one, Wrongf("there is no context %q; portolan context list shows all, portolan login makes one", at)
	}
	return one, nil
}

var contextName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// Set puts a context under a name, and lets it hold.
func (c *Contexts) Set(name string, one Context) error {
	if !contextName.MatchString(name) {
		return Wrongf("%q is no name of a context: letters, digits, dots, dashes and underscores, up to 63", name)
	}
	c.Contexts[name], c.Current = one, name
	return nil
}

// Save writes them, whole or not at all; nobody else may read the file.
func (c Contexts) Save() error {
	if c.path == "" {
		return errors.New("there is no directory for the contexts: set HOME, or PORTOLAN_CONTEXTS to a file")
	}
	text, err := yaml.Marshal(c)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(c.path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(c.path), ".contexts-") // which is 0600
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if e := f.Sync(); err == nil {
		err = e
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), c.path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// Path is the file that they are kept in.
func (c Contexts) Path() string { return c.path }
