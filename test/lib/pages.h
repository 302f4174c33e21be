/*
 * pages.h
 *		Memory for tests of what runs inside the engine.
 */
#ifndef GEONN_TEST_PAGES_H
#define GEONN_TEST_PAGES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Memory of whole pages, as batches have it, all zero; the caller frees it.  Ends the program if there is none. */
static inline void *
allocate_pages(size_t bytes)
{
	size_t		whole = (bytes / 4096 + 1) * 4096;
	void	   *memory = aligned_alloc(4096, whole);

	if (memory == NULL)
	{
		printf("Bail out! not enough memory\n");
		exit(EXIT_FAILURE);
	}
	return memset(memory, 0, whole);
}

#endif							/* GEONN_TEST_PAGES_H */
