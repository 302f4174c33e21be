/*
 * search.c
 *		Records what a search has answered, in the same way for all devices.
 */
#include "engine/search/device.h"

void
search_account(struct search *search, uint32_t rows, uint32_t pairs, bool one_each)
{
	uint32_t   *count = search->columns.count + search->first;

	/* unless every observation has one pair, all need their counts */
	if (search->answered == 0)
		search->one_each = one_each;
	else if (search->one_each && !one_each)
	{
		search->one_each = false;
		for (uint32_t i = 0; i < search->answered; i++)
			count[i] = 1;
	}
	else if (!search->one_each && one_each)
		for (uint32_t i = 0; i < rows; i++)
			count[search->answered + i] = 1;
	search->answered += rows;
	search->pairs += pairs;
}
