package logs

// registry maps the parser names in rows to parsers.
var registry = map[string]parser{
	// Python
	"parse_log_pytest":         perLine(pytest),
	"parse_log_astroid":        perLine(pytest),
	"parse_log_flask":          perLine(pytest),
	"parse_log_marshmallow":    perLine(pytest),
	"parse_log_pvlib":          perLine(pytest),
	"parse_log_pyvista":        perLine(pytest),
	"parse_log_sqlfluff":       perLine(pytest),
	"parse_log_xarray":         perLine(pytest),
	"parse_log_pytest_options": perLine(pytestOptions),
	"parse_log_pydicom":        perLine(pytestOptions),
	"parse_log_pylint":         perLine(pytestOptions),
	"parse_log_requests":       perLine(pytestOptions),
	"parse_log_pytest_v2":      perLine(pytestV2),
	"parse_log_astropy":        perLine(pytestV2),
	"parse_log_scikit":         perLine(pytestV2),
	"parse_log_sphinx":         perLine(pytestV2),
	"parse_log_matplotlib":     perLine(matplotlib),
	"parse_log_seaborn":        perLine(seaborn),
	"parse_log_sympy":          sympy,
	"parse_log_django":         django,

	// C and C++
	"parse_log_redis":            perStripped(redis),
	"parse_log_jq":               parserFor(`^(PASS|FAIL):\s(.+)$`, 2, 1),
	"parse_log_micropython_test": parserFor(`^(pass|FAIL|skip)\s+(.+)$`, 2, 1),
	"parse_log_googletest":       parserFor(`^.*\[\s*(OK|FAILED)\s*\]\s(.*)\s\(.*\)$`, 2, 1),
	"parse_log_doctest":          doctest,

	// Go, Rust, PHP
	"parse_log_gotest":  parserFor(`^--- (PASS|FAIL|SKIP): (.+) \((.+)\)$`, 2, 1),
	"parse_log_cargo":   parserFor(`^test\s+(\S+)\s+\.\.\.\s+(ok|FAILED)$`, 1, 2),
	"parse_log_phpunit": phpunit,

	// Java
	"parse_log_maven":         maven,
	"parse_log_ant":           parserFor(`^\[junit\]\s+\[(PASS|FAIL|ERR)\]\s+(.*)$`, 2, 1),
	"parse_log_gradle_custom": gradle,

	// Ruby
	"parse_log_minitest":               minitest,
	"parse_log_cucumber":               cucumber,
	"parse_log_ruby_unit":              perStripped(rubyUnit),
	"parse_log_rspec_transformed_json": parserFor(`^(.+) - (passed|failed)`, 1, 2),
	"parse_log_jekyll":                 jekyll,

	// JavaScript
	"parse_log_jest":         perStripped(jest),
	"parse_log_jest_json":    jestJSON,
	"parse_log_vitest":       parserFor(`^(✓|×|↓)\s(.+?)(?:\s(\d+\s*m?s?|\[skipped\]))?$`, 2, 1),
	"parse_log_tap":          parserFor(`^(ok|not ok) (\d+) (.+)$`, 3, 1),
	"parse_log_immutable_js": immutableJS,
	"parse_log_karma":        karma,
	"parse_log_carbon":       perLine(carbon),
	"parse_log_react_pdf":    perLine(carbon),
	"parse_log_grommet":      grommet,
	"parse_log_calypso":      calypso,
	"parse_log_chart_js":     chartJS,
	"parse_log_bpmn_js":      bpmnJS,
	"parse_log_openlayers":   openLayers,
	"parse_log_eslint":       eslint,
	"parse_log_marked":       perLine(markedJS),
	"parse_log_p5js":         p5js,
	"parse_log_highlightjs":  highlightJS,
	"parse_log_prismjs":      prismJS,
	"parse_log_lighthouse":   lighthouse,
	"parse_log_next":         next,
	"parse_log_quarto_cli":   quarto,
}

// lineRule parses one line. ok reports whether the line is the result of a test.
type lineRule func(line string) (name string, s Status, ok bool)

// perLine returns a parser that applies a rule to each line.
func perLine(rule lineRule) parser {
	return func(t *Tests, text string, _ InstanceInfo) error {
		for line := range lines(text) {
			if name, s, ok := rule(line); ok {
				t.Set(name, s)
			}
		}
		return nil
	}
}

// perStripped returns a parser that applies a rule to each line without the white space around
// it. It skips empty lines.
func perStripped(rule lineRule) parser {
	return perLine(func(line string) (string, Status, bool) {
		line = strip(line)
		if line == "" {
			return "", "", false
		}
		return rule(line)
	})
}

// noTest returns the values that a lineRule returns for a line without a test.
func noTest() (string, Status, bool) { return "", "", false }
