
# Without a GPU searches run on the CPU, and what asks for a GPU is told why not.
# rooms: supervisor watch engine/search

use strict;
use warnings;

use Geonn;
use Test::More;

local $ENV{CUDA_VISIBLE_DEVICES} = '';
my $node = new_server('no_gpu', preload => 1);

is($node->safe_psql('postgres', $small_search), '1:7 2:8 3:9', 'geonn.device = auto searches');
is($node->safe_psql('postgres', "SET geonn.device = 'cpu'; $small_search"),
	'1:7 2:8 3:9', 'geonn.device = cpu searches');

my ($status, undef, $error) = $node->psql('postgres', "SET geonn.device = 'cuda'; $small_search");
isnt($status, 0, 'geonn.device = cuda fails');
like($error, qr/ERROR:.*(GPU|CUDA)/, 'its error says what is missing');
like($error, qr/HINT:/, 'and the hint what to do');
note($error);

isnt(status($node, 'reason'), '', 'geonn_status() says why there is no GPU');
is($node->safe_psql('postgres', "SELECT count(*) FROM geonn_devices WHERE kind = 'cpu' AND used"),
	'1', 'geonn_devices has the CPU, in use');
is($node->safe_psql('postgres', "SELECT count(*) FROM geonn_devices WHERE kind = 'cuda' AND state = 'ready'"),
	'0', 'and no GPU that is ready');
isnt(Geonn::slurp($node->logfile) =~ tr/\n//, 0, 'there is a log');
like(Geonn::slurp($node->logfile), qr/geonn.*(GPU|CUDA)/i, 'which says once why there is no GPU');

done_testing();
