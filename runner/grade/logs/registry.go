package logs

// registry has the names that rows use.
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
	"parse_log_jq":               perStripped(jq),
	"parse_log_micropython_test": perStripped(micropython),
	"parse_log_googletest":       perStripped(googletest),
	"parse_log_doctest":          doctest,

	// Go, Rust, PHP
	"parse_log_gotest":  perStripped(gotest),
	"parse_log_cargo":   perStripped(cargo),
	"parse_log_phpunit": phpunit,

	// Java
	"parse_log_maven":         maven,
	"parse_log_ant":           perStripped(ant),
	"parse_log_gradle_custom": gradle,

	// Ruby
	"parse_log_minitest":               perStripped(minitest),
	"parse_log_cucumber":               perStripped(cucumber),
	"parse_log_ruby_unit":              perStripped(rubyUnit),
	"parse_log_rspec_transformed_json": perStripped(rspec),
	"parse_log_jekyll":                 jekyll,

	// JavaScript
	"parse_log_jest":         perStripped(jest),
	"parse_log_jest_json":    perStripped(jestJSON),
	"parse_log_vitest":       perStripped(vitest),
	"parse_log_tap":          perStripped(tap),
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
	"parse_log_marked":       perLine(marked),
	"parse_log_p5js":         p5js,
	"parse_log_highlightjs":  highlightJS,
	"parse_log_prismjs":      prismJS,
	"parse_log_lighthouse":   lighthouse,
	"parse_log_next":         next,
	"parse_log_quarto_cli":   quarto,
}

// rule reads one line; ok says whether it tells of a test.
type rule func(line string) (name string, s Status, ok bool)

// perLine is a parser that knows nothing beyond the line.
func perLine(read rule) parser {
	return func(t *Tests, text string, _ Subject) error {
		for line := range lines(text) {
			if name, s, ok := read(line); ok {
				t.Set(name, s)
			}
		}
		return nil
	}
}

// perStripped is perLine for rules of lines without spaces around them.
func perStripped(read rule) parser {
	return perLine(func(line string) (string, Status, bool) {
		line = strip(line)
		if line == "" {
			return "", "", false
		}
		return read(line)
	})
}

// none is what a rule answers for a line that tells of no test.
func none() (string, Status, bool) { return "", "", false }
