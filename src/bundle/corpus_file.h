/* Inside layer 7: what corpus.json tells of a run's other files; see corpus_file.c. */
#ifndef HEADWISE_BUNDLE_CORPUS_FILE_H
#define HEADWISE_BUNDLE_CORPUS_FILE_H

#include <headwise/bundle.h>

/* Is NAME, a tokenizer's model in the directory, one that a run wrote there? */
bool hw_bundle_wrote(const char *directory, const char *name);

#endif
