/*
 * Cleans up after killed processes: files being written are called NAME.PID.tmp
 * or NAME.PID-MORE.tmp until they are complete. Those whose process is gone are
 * useless.
 */
#ifndef PEN_BASE_STALE_H
#define PEN_BASE_STALE_H

#include <stdbool.h>

/*
 * Calls fn with the path of each entry next to `path` called NAME.PID*.SUFFIX
 * whose process no longer exists, NAME being the last part of path; path
 * "DIR/": any name. Other machines write to shared file systems too: there,
 * only entries not modified for an hour count.
 */
void pen__stale_each(const char *path, const char *suffix,
		     void (*fn)(const char *stale, void *arg), void *arg);
/* Removes such files with the suffix "tmp". */
void pen__stale_remove(const char *path);

#endif
