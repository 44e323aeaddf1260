/* What fasta's reader and its reading of .fai share. */
#ifndef PEN_FORMAT_SEQUENCE_FASTA_H
#define PEN_FORMAT_SEQUENCE_FASTA_H

#include "format/sequence/sequence.h"

/* Records by FILE.fai; PEN_END when there is none, it is wrong, or reading
 * the file is as good. */
int pen__fasta_fai(struct pen_seq_scan *);

#endif
