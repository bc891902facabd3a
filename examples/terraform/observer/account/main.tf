# The role that Driftline takes on in one account: it reads, and nothing else.

terraform {
  required_version = ">= 1.5"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.40"
    }
  }
}

locals {
  # Printed by the program: `driftline --config ../hub/driftline.toml -o json observe all --dry-run`, member `policy`.
  # Written without spaces, because IAM counts at most 6,144 characters of a policy.
  policy = jsonencode(jsondecode(file("${path.module}/observer-policy.json")))
}

resource "aws_iam_role" "observer" {
  name        = var.role_name
  description = "Driftline looks at this account with it. It only reads."

  # What is entered from another role lasts an hour at most.
  max_session_duration = 3600

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "DriftlineHub"
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { AWS = var.hub_role_arn }
      Condition = { StringEquals = { "sts:ExternalId" = var.external_id } }
    }]
  })

  tags = var.tags
}

resource "aws_iam_policy" "observer" {
  name        = "${var.role_name}Read"
  description = "Exactly the actions that Driftline calls."
  policy      = local.policy
  tags        = var.tags

  lifecycle {
    precondition {
      condition     = length(local.policy) <= 6144
      error_message = "IAM takes at most 6,144 characters: leave out sources, and print the policy again."
    }
  }
}

resource "aws_iam_role_policy_attachment" "observer" {
  role       = aws_iam_role.observer.name
  policy_arn = aws_iam_policy.observer.arn
}
