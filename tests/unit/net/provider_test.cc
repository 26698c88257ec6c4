#include "net/provider.h"

#include <doctest/doctest.h>
#include <rdma/fi_domain.h>

#include <cstring>

namespace weft::net {
namespace {

InfoPtr info_of(const char* provider, int mr_mode) {
  InfoPtr info(fi_allocinfo());
  info->fabric_attr->prov_name = ::strdup(provider);
  info->domain_attr->mr_mode = mr_mode;
  return info;
}

TEST_CASE("mapped files are landed in by those that copy, and by nobody who pins pages or is not known") {
  for (const char* provider : {"net", "net;ofi_rxm", "tcp;ofi_rxm"}) {
    CHECK(lands_by_address(*info_of(provider, 0)));
    CHECK(!lands_by_address(*info_of(provider, FI_MR_LOCAL)));
    CHECK(!lands_by_address(*info_of(provider, FI_MR_ALLOCATED)));
  }
  for (const char* provider : {"verbs;ofi_rxm", "efa", "cxi", "psm3", "psm2", "network", "shm"}) {
    CHECK(!lands_by_address(*info_of(provider, 0)));
    CHECK(!lands_by_address(*info_of(provider, FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)));
  }
}

}  // namespace
}  // namespace weft::net
