package runner

// ImportedClass stands in run.json where the class of the model does in others.
const ImportedClass = "imported"
