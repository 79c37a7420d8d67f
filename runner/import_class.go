package runner

// ImportedClass is the model class in the run.json of imported attempts.
const ImportedClass = "imported"
