# The role that the observer runs as: it may find the accounts, take on the role in each, and use the bucket.

locals {
  # Printed by the program: `driftline --config driftline.toml -o json observe all --dry-run`, member `callerPolicy`.
  caller_actions = one(jsondecode(file("${path.module}/caller-policy.json")).Statement).Action
}

data "aws_partition" "current" {}

resource "aws_iam_role" "hub" {
  name        = var.name
  description = "Driftline runs as this, and takes on ${var.role_name} in each account."

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "ecs-tasks.amazonaws.com" }
    }]
  })

  tags = var.tags
}

resource "aws_iam_role_policy" "hub" {
  name = "observe"
  role = aws_iam_role.hub.id

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat(
      [
        {
          Sid      = "FindAccounts"
          Effect   = "Allow"
          Action   = [for action in local.caller_actions : action if action != "sts:AssumeRole"]
          Resource = "*"
        },
        {
          # Only the observer's own role, whatever else trusts this one.
          Sid      = "EnterAccounts"
          Effect   = "Allow"
          Action   = "sts:AssumeRole"
          Resource = "arn:${data.aws_partition.current.partition}:iam::*:role/${var.role_name}"
        },
        {
          Sid      = "List"
          Effect   = "Allow"
          Action   = "s3:ListBucket"
          Resource = aws_s3_bucket.store.arn
        },
        {
          # Deleting is for what a commit that failed had written, and for `driftline gc`.
          Sid      = "Store"
          Effect   = "Allow"
          Action   = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"]
          Resource = "${aws_s3_bucket.store.arn}/*"
        },
      ],
      var.kms_key_arn == null ? [] : [{
        Sid      = "Key"
        Effect   = "Allow"
        Action   = ["kms:Decrypt", "kms:GenerateDataKey"]
        Resource = var.kms_key_arn
      }],
    )
  })
}

# The account that the observer runs in is looked at as it is, without another role.
resource "aws_iam_role_policy" "own_account" {
  count = var.observe_own_account ? 1 : 0

  name   = "observe-own-account"
  role   = aws_iam_role.hub.id
  policy = jsonencode(jsondecode(file("${path.module}/../account/observer-policy.json")))
}

# What starts the container may fetch the image, write its log, and read the seal key.
resource "aws_iam_role" "start" {
  name = "${var.name}-start"

  assume_role_policy = aws_iam_role.hub.assume_role_policy
  tags               = var.tags
}

resource "aws_iam_role_policy_attachment" "start" {
  role       = aws_iam_role.start.name
  policy_arn = "arn:${data.aws_partition.current.partition}:iam::aws:policy/service-role/AmazonECSTaskExecutionRolePolicy"
}

resource "aws_iam_role_policy" "start" {
  name = "seal-key"
  role = aws_iam_role.start.id

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect   = "Allow"
      Action   = "secretsmanager:GetSecretValue"
      Resource = var.seal_key_secret_arn
    }]
  })
}

# The scheduler may start this one task, as these two roles.
resource "aws_iam_role" "schedule" {
  name = "${var.name}-schedule"

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "scheduler.amazonaws.com" }
    }]
  })

  tags = var.tags
}

resource "aws_iam_role_policy" "schedule" {
  name = "start"
  role = aws_iam_role.schedule.id

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Effect    = "Allow"
        Action    = "ecs:RunTask"
        Resource  = "${aws_ecs_task_definition.observer.arn_without_revision}:*"
        Condition = { ArnEquals = { "ecs:cluster" = aws_ecs_cluster.observer.arn } }
      },
      {
        Effect   = "Allow"
        Action   = "iam:PassRole"
        Resource = [aws_iam_role.hub.arn, aws_iam_role.start.arn]
      },
    ]
  })
}
