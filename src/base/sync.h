/* Makes names survive a power failure. */
#ifndef PEN_BASE_SYNC_H
#define PEN_BASE_SYNC_H

/*
 * Syncs the directory that holds `path`, whose name is new there; 0 or errno.
 * It is not a failure if the file system needs no sync of directories, or if
 * the directory may not be read.
 */
int pen__sync_parent(const char *path);

#endif
