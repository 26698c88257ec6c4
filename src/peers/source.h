// Other nodes of the cluster as a source of bytes. The best holder is asked first, and several at once.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "pace/pace_gate.h"
#include "peers/coded_cache.h"
#include "peers/links.h"
#include "peers/news.h"
#include "peers/read_blocks.h"
#include "peers/search.h"
#include "peers/swarm_server.h"
#include "peers/view.h"
#include "weft/bytes/source.h"
#include "weft/cluster/exchange.h"

namespace weft {

class PeerSource final : public BlobSource {
 public:
  // The arguments outlive this. `swarms`: hears of arrived and evicted chunks; may be null. `gate` paces the reads;
  // null: nothing does.
  PeerSource(Exchange& exchange, PeerView& view, PeerLinks& links, PeerNews& news, PeerCoding& coding,
             SwarmServer* swarms = nullptr, std::shared_ptr<PaceGate> gate = nullptr);
  ~PeerSource() override { blocks_->close(); }

  std::string_view name() const override { return "peer"; }
  Result<std::vector<std::byte>> manifest(const Digest& digest, Deadline deadline) override;
  Result<std::vector<Digest>> chunks(const Digest& manifest, const ContentId& id, Deadline deadline) override;
  Result<SourceBytes> read(const Digest& manifest, std::span<const ChunkRun> runs, Deadline deadline,
                           ReadAid& aid) override;
  void expect(const VersionRow& version, std::span<const ContentId> blobs) override;
  void arrived(const Digest& manifest, std::span<const ChunkRun> runs) override;
  void evicted() override;
  Readiness readiness(const Digest& manifest, std::span<const ChunkRun> runs) override;
  bool refuted(std::uint32_t giver) override;
  bool codes() const override { return true; }
  bool reads_offers() const override { return true; }
  void miscoded(std::uint32_t giver) override;

 private:
  class Reading;
  Result<std::unique_ptr<Answer>> call(const PeerSearch::Try& to, const PeerRequest& request, const OnSign& on_sign);
  Result<std::vector<std::byte>> ask(PeerSearch& search, const PeerSearch::Try& to, const PeerRequest& request);

  Exchange& exchange_;
  const std::shared_ptr<ReadBlocks> blocks_;
  PeerView& view_;
  PeerLinks& links_;
  PeerNews& news_;
  PeerCoding& coding_;
  SwarmServer* const swarms_;
  const std::shared_ptr<PaceGate> gate_;
  const PeerScene scene_;
};

}  // namespace weft
