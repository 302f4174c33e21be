/*
 * nanoflann_peer.cc
 *		nanoflann's tree on points that geonn-bench exported, for test/bench/peers.
 *
 *	nanoflann_peer POINTS OBSERVATIONS REFERENCES K REPETITIONS ANSWERS [self]
 *
 * POINTS begins with four columns of float64: latitudes and longitudes of the references, then of the
 * observations, in degrees.  The program builds a tree of the references' unit vectors and asks for K neighbours
 * of each observation, in their order.  With "self" the observations are the references: the program asks in
 * the order of the tree and leaves each point out of its own answer.
 *
 * It writes the row numbers of the answers to ANSWERS (int64, K for each observation) and prints seconds, one
 * a line: of building, then of each repetition after one to warm up.
 */
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <nanoflann.hpp>

struct Points
{
	std::vector<double> coordinates;	/* three for each point */

	size_t kdtree_get_point_count() const { return coordinates.size() / 3; }
	double kdtree_get_pt(size_t row, size_t axis) const { return coordinates[3 * row + axis]; }
	template <class Box> bool kdtree_get_bbox(Box &) const { return false; }
};

using Tree = nanoflann::KDTreeSingleIndexAdaptor<nanoflann::L2_Simple_Adaptor<double, Points>, Points, 3, uint32_t>;

static void
fail(const char *what, const char *name)
{
	fprintf(stderr, "nanoflann_peer: could not %s %s\n", what, name);
	exit(1);
}

static double
seconds_since(std::chrono::steady_clock::time_point begin)
{
	return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/* Read a column of latitudes and one of longitudes as unit vectors. */
static Points
read_points(FILE *file, const char *name, size_t count)
{
	const double radian = std::acos(-1.0) / 180;
	std::vector<double> degrees(2 * count);
	Points		points;

	if (fread(degrees.data(), sizeof(double), degrees.size(), file) != degrees.size())
		fail("read", name);
	points.coordinates.reserve(3 * count);
	for (size_t row = 0; row < count; row++)
	{
		double		latitude = degrees[row] * radian;
		double		longitude = degrees[count + row] * radian;

		points.coordinates.push_back(std::cos(latitude) * std::cos(longitude));
		points.coordinates.push_back(std::cos(latitude) * std::sin(longitude));
		points.coordinates.push_back(std::sin(latitude));
	}
	return points;
}

/* Ask for the k nearest of each observation, and with self for those but the observation itself. */
static void
answer_all(const Tree &tree, const Points &observations, size_t k, bool self, std::vector<int64_t> &answers)
{
	size_t		wanted = k + (self ? 1 : 0);
	std::vector<uint32_t> rows(wanted);
	std::vector<double> distances(wanted);

	for (size_t i = 0; i < observations.kdtree_get_point_count(); i++)
	{
		size_t		observation = self ? tree.vAcc[i] : i;
		int64_t    *answer = &answers[observation * k];
		size_t		found = tree.knnSearch(&observations.coordinates[3 * observation], wanted, rows.data(),
										   distances.data());
		size_t		kept = 0;

		for (size_t j = 0; j < found && kept < k; j++)
			if (!self || rows[j] != observation)
				answer[kept++] = rows[j];
	}
}

int
main(int argc, char **argv)
{
	if (argc < 7)
		fail("run without", "POINTS OBSERVATIONS REFERENCES K REPETITIONS ANSWERS");

	size_t		observation_count = strtoull(argv[2], nullptr, 10);
	size_t		reference_count = strtoull(argv[3], nullptr, 10);
	size_t		k = strtoull(argv[4], nullptr, 10);
	int			repetitions = atoi(argv[5]);
	bool		self = argc > 7 && std::string(argv[7]) == "self";
	FILE	   *file = fopen(argv[1], "rb");

	if (file == nullptr)
		fail("open", argv[1]);
	Points		references = read_points(file, argv[1], reference_count);
	Points		observations = read_points(file, argv[1], observation_count);

	fclose(file);

	auto		begin = std::chrono::steady_clock::now();
	Tree		tree(3, references, nanoflann::KDTreeSingleIndexAdaptorParams(10));

	tree.buildIndex();
	printf("%.9f\n", seconds_since(begin));

	std::vector<int64_t> answers(observation_count * k);

	for (int i = 0; i <= repetitions; i++)
	{
		begin = std::chrono::steady_clock::now();
		answer_all(tree, observations, k, self, answers);
		if (i > 0)
			printf("%.9f\n", seconds_since(begin));
	}
	file = fopen(argv[6], "wb");
	if (file == nullptr || fwrite(answers.data(), sizeof(int64_t), answers.size(), file) != answers.size() ||
		fclose(file) != 0)
		fail("write", argv[6]);
	return 0;
}
