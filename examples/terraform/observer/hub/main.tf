# Where the observer runs and what it has seen is kept: a bucket, a task for each share of the accounts, and their roles.

terraform {
  required_version = ">= 1.5"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.40"
    }
  }
}

data "aws_region" "current" {}

locals {
  # Where in the bucket the store is.
  prefix = "drift"
}
