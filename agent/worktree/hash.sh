# Prints the hash of the tree that tree.sh sets, and no patch.
emit exact "$tree"
