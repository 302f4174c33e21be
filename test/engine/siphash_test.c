/*
 * siphash_test.c
 *		The keyed hash against what another implementation, OpenSSL's, says.
 *
 * Each line can be had again by
 *
 *		openssl mac -macopt hexkey:000102030405060708090a0b0c0d0e0f -macopt size:16
 *				-in FILE SIPHASH
 *
 * with a file of the bytes 0, 1, 2, ...; three of them are in the reference implementation's
 * vectors as well.
 *
 * rooms: cache
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cache/siphash.h"
#include "../lib/verdict.h"

static const struct
{
	size_t		length;
	const char *hash;
}			vectors[] = {
	{0, "A3817F04BA25A8E66DF67214C7550293"},
	{1, "DA87C1D86B99AF44347659119B22FC45"},
	{2, "8177228DA4A45DC7FCA38BDEF60AFFE4"},
	{3, "9C70B60C5267A94E5F33B6B02985ED51"},
	{4, "F88164C12D9C8FAF7D0F6E7C7BCD5579"},
	{5, "1368875980776F8854527A07690E9627"},
	{6, "14EECA338B208613485EA0308FD7A15E"},
	{7, "A1F1EBBED8DBC153C0B84AA61FF08239"},
	{8, "3B62A9BA6258F5610F83E264F31497B4"},
	{9, "264499060AD9BAABC47F8B02BB6D71ED"},
	{10, "00110DC378146956C95447D3F3D0FBBA"},
	{11, "0151C568386B6677A2B4DC6F81E5DC18"},
	{12, "D626B266905EF35882634DF68532C125"},
	{13, "9869E247E9C08B10D029934FC4B952F7"},
	{14, "31FCEFAC66D7DE9C7EC7485FE4494902"},
	{15, "5493E99933B0A8117E08EC0F97CFC3D9"},
	{16, "6EE2A4CA67B054BBFD3315BF85230577"},
	{17, "473D06E8738DB89854C066C47AE47740"},
	{18, "A426E5E423BF4885294DA481FEAEF723"},
	{19, "78017731CF65FAB074D5208952512EB1"},
	{20, "9E25FC833F2290733E9344A5E83839EB"},
	{21, "568E495ABE525A218A2214CD3E071D12"},
	{22, "4A29B54552D16B9A469C10528EFF0AAE"},
	{23, "C9D184DDD5A9F5E0CF8CE29A9ABF691C"},
	{24, "2DB479AE78BD50D8882A8A178A6132AD"},
	{25, "8ECE5F042D5E447B5051B9EACB8D8F6F"},
	{26, "9C0B53B4B3C307E87EAEE08678141F66"},
	{27, "ABF248AF69A6EAE4BFD3EB2F129EEB94"},
	{28, "0664DA1668574B88B935F3027358AEF4"},
	{29, "AA4B9DC4BF337DE90CD4FD3C467C6AB7"},
	{30, "EA5C7F471FAF6BDE2B1AD7D4686D2287"},
	{31, "2939B0183223FAFC1723DE4F52C43D35"},
	{32, "7C3956CA5EEAFC3E363E9D556546EB68"},
	{33, "77C6077146F01C32B6B69D5F4EA9FFCF"}
};

static bool
has_hash(size_t length, const char *expected)
{
	unsigned char bytes[64];
	uint64_t	key[2];
	uint64_t	hash[2];
	char		text[2 * sizeof(hash) + 1];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char) i;
	memcpy(key, bytes, sizeof(key));
	geonn_siphash(key, bytes, length, hash);
	for (size_t i = 0; i < sizeof(hash); i++)
		snprintf(text + 2 * i, 3, "%02X", ((const unsigned char *) hash)[i]);
	return strcmp(text, expected) == 0;
}

int
main(void)
{
	bool		all = true;

	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++)
		all = has_hash(vectors[i].length, vectors[i].hash) && all;
	report("the keyed hash is SipHash-2-4 of 128 bits, of each number of bytes from 0 to 33", all);
	return summed_up();
}
