/* Inside layer 6: an array that grows in memory and, where it becomes large, goes on in a file without a name.
 *
 * A corpus of ten million pairs is gigabytes of ids, of which a batch needs a few kilobytes at random places. In a
 * mapped file they are the system's to keep or to drop; hw_store_release lets go of what was looked at, so that a
 * process that has seen the whole corpus has no more in memory than one that has begun. */
#ifndef HW_TEXT_STORE_H
#define HW_TEXT_STORE_H

#include <headwise/base.h>

typedef struct hw_store {
    void *data;
    size_t room; /* bytes */
    bool mapped;
    int file; /* where mapped */
} hw_store;   /* zeroed: empty */

/* Where an array goes when it is larger than `memory` bytes; directory NULL: nowhere. */
typedef struct hw_store_place {
    const char *directory;
    size_t memory;
} hw_store_place;

/* Room for so many bytes at least. Errors: no memory, no room in the file system. What was there stays, maybe
 * elsewhere. */
bool hw_store_grow(hw_store *store, size_t bytes, const hw_store_place *place, hw_error *err);
void hw_store_release(const hw_store *store);
void hw_store_free(hw_store *store);

#endif
