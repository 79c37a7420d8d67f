# Prints the hash of the tree that tree.sh sets, without a patch.
emit exact "$tree"
