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

// Context is a manager that commands address by default, with the credentials for it.
type Context struct {
	URL   string `yaml:"url"`
	Token string `yaml:"token,omitempty"`
	// TokenID is the ID of the token if portolan login created it. portolan logout revokes that token.
	TokenID string `yaml:"tokenId,omitempty"`
	// CA is a file with a certificate authority to trust in addition to the system's.
	CA string `yaml:"ca,omitempty"`
	// Configuration and View are the names of the default configuration and view of a command.
	Configuration string `yaml:"configuration,omitempty"`
	View          string `yaml:"view,omitempty"`
}

// Contexts are the contexts of a user. Their file is readable by its owner only.
type Contexts struct {
	// Current is the name of the default context.
	Current  string             `yaml:"current"`
	Contexts map[string]Context `yaml:"contexts"`
	path     string
}

// contextsPath returns the path of the contexts file: the value of PORTOLAN_CONTEXTS, or portolan/contexts.yaml in the user's configuration
// directory.
func contextsPath() (string, error) {
	if path := os.Getenv("PORTOLAN_CONTEXTS"); path != "" {
		return path, nil
	}
	dir, err := os.UserConfigDir()
	return filepath.Join(dir, "portolan", "contexts.yaml"), err
}

// ReadContexts reads the contexts file. It returns no contexts if the file does not exist or the user has no configuration directory.
func ReadContexts() (c Contexts, err error) {
	c.Contexts = map[string]Context{}
	if c.path, err = contextsPath(); err != nil {
		c.path = ""
		return c, nil //nolint:nilerr // a service has no home directory and no contexts
	}
	text, err := os.ReadFile(c.path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("read the contexts: %w", err)
	}
	if err := yaml.Unmarshal(text, &c); err != nil {
		return c, fmt.Errorf("%s is not a contexts file: %w", c.path, err)
	}
	if c.Contexts == nil {
		c.Contexts = map[string]Context{}
	}
	return c, nil
}

// Get returns a context by its name, or the current context if name is empty. It returns the zero Context if there is no current context.
func (c Contexts) Get(name string) (Context, error) {
	at := cmp.Or(name, c.Current)
	one, there := c.Contexts[at]
	if at != "" && !there {
		return one, wrongf("context %q does not exist: list contexts with portolan context list, create one with portolan login", at)
	}
	return one, nil
}

var contextName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// Set stores a context under a name and makes it the current context.
func (c *Contexts) Set(name string, one Context) error {
	if !contextName.MatchString(name) {
		return wrongf("%q is not a valid context name: use up to 63 letters, digits, dots, dashes and underscores", name)
	}
	c.Contexts[name], c.Current = one, name
	return nil
}

// Save writes the contexts file atomically. Only its owner may read it.
func (c Contexts) Save() error {
	if c.path == "" {
		return errors.New("no directory for contexts: set HOME, or set PORTOLAN_CONTEXTS to a file")
	}
	text, err := yaml.Marshal(c)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(c.path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(c.path), ".contexts-") // creates it with mode 0600
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

// Path returns the path of the contexts file.
func (c Contexts) Path() string { return c.path }
